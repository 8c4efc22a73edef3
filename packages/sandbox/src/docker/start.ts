import type { KeyObject } from "node:crypto";
import { existsSync, renameSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { Architecture } from "../engine/architecture.ts";
import type { SandboxSpec } from "../engine/engine.ts";
import type { InitConnection } from "../init/connection.ts";
import { initKeyArgument } from "../init/key.ts";
import { initProgram } from "../init/program.ts";
import { connectStartingInit } from "../init/ready.ts";
import { waitUntilReady } from "../lifecycle/readiness.ts";
import { startFailed } from "../lifecycle/start-errors.ts";
import { startWithin } from "../lifecycle/start-limits.ts";
import { createWorkingDirectory } from "../lifecycle/working-directory.ts";
import { DEFAULT_CAPABILITY_LIMIT } from "../spec/capabilities.ts";
import { APPENDED } from "../spec/listening.ts";
import { type DockerApi, isDockerError } from "./api.ts";
import { assertCapable, assertNetworks } from "./checks.ts";
import { containerConfig, containerName, INIT_SOCKET, seccompFile, seccompText } from "./container.ts";
import { type Daemon, runtimeFor } from "./daemon.ts";
import type { DockerEgress } from "./egress.ts";
import { writeEgressHint } from "./egress-hint.ts";
import type { DockerImage } from "./images.ts";
import type { DockerNetworks } from "./networks.ts";
import type { DockerEngineOptions } from "./options.ts";
import { describeTimeout, maxUserProcesses, programOf, startProgram } from "./program-start.ts";
import { initSocket, runFolder } from "./record.ts";
import type { DockerSandbox } from "./sandbox.ts";
import type { DockerVolumes } from "./volumes.ts";

export interface ContainerStart {
  readonly sandbox: DockerSandbox;
  readonly spec: SandboxSpec;
  readonly image: DockerImage;
  readonly site: ContainerSite;
  readonly signal: AbortSignal;
}

/** Where containers are created. */
export interface ContainerSite {
  readonly api: DockerApi;
  readonly homeId: string;
  /** The folder of the engine. */
  readonly folder: string;
  /** The key of inits. */
  readonly key: KeyObject;
  readonly options: Pick<DockerEngineOptions, "runtime" | "capabilityLimit" | "folders">;
  readonly egress: DockerEgress;
  readonly networks: DockerNetworks;
  readonly volumes: DockerVolumes;
  readonly daemon: () => Promise<Daemon>;
}

/** Creates the container, starts the program in it, and waits until it answers. */
export async function startInContainer(start: ContainerStart): Promise<void> {
  const { sandbox, spec, image, site, signal } = start;
  let status: number | null = null;
  const listening = spec.listening ?? APPENDED;
  const limits = {
    id: spec.id,
    signal,
    timeoutMs: spec.startTimeoutMs,
    timedOut: async () => {
      const reason = describeTimeout(sandbox, spec, status);
      const lines = await sandbox.tail(20).catch(() => []);
      const last = lines.at(-1);
      return startFailed(spec.id, `${reason}${last === undefined ? "" : `; it last printed: ${last}`}`, lines);
    },
  };
  try {
    await startWithin(limits, async (stop, fail) => {
      sandbox.exited.then(({ reason }) => fail(() => new Error(reason)));
      await createContainer(start);
      stop.throwIfAborted();
      const init = await takeInit(sandbox, site.key, stop);
      await writeEgressHint(init, sandbox.record);
      await createWorkingDirectory(spec.id, init, spec.program?.cwd ?? image.config.workingDirectory);
      const folder = spec.folder === undefined ? null : await sandbox.addFolder(spec.folder, stop);
      await startProgram(init, spec, programOf(spec, image, site.key), folder);
      await sandbox.forward();
      if (listening.kind === "none") return;
      await waitUntilReady(
        () => sandbox.address,
        listening,
        stop,
        (answered) => {
          status = answered;
        },
      );
    });
  } catch (error) {
    if (isPlatformError(error)) throw error;
    throw startFailed(spec.id, messageOf(error), await sandbox.tail(20).catch(() => []));
  }
}

/** Not cancelled half-way: the daemon would create the container anyway, after this process had looked for it. */
async function createContainer({ sandbox, spec, image, site }: ContainerStart): Promise<void> {
  const { api, homeId, options, egress: connections, networks, volumes } = site;
  const architecture = process.arch as Architecture;
  const daemon = await site.daemon();
  const runtime = runtimeFor(spec.runtime ?? options.runtime, daemon);
  daemon.assertLimits(spec);
  const { capabilityLimit = DEFAULT_CAPABILITY_LIMIT } = options;
  await assertCapable(spec, capabilityLimit, daemon, runtime);
  if (spec.networks !== undefined || spec.volumes !== undefined) assertNetworks(spec.id, daemon, runtime.runtime);
  sandbox.record = { ...sandbox.record, runtime: runtime.runtime };
  const { egress = "none", networks: [first, ...others] = [] } = spec;
  const out = await connections.prepare(sandbox, egress, daemon);
  const config = containerConfig({
    homeId,
    spec,
    image: image.id,
    ...runtime,
    initPath: await initProgram(architecture),
    initKey: initKeyArgument(site.key),
    runFolder: runFolder(sandbox.record),
    folders: (options.folders ?? []).filter((folder) => existsSync(folder)),
    network: first === undefined ? out.network : await networks.createPrivate(first.id),
    nameServers: out.nameServers,
    volumeName: (id) => volumes.nameOf(id),
    seccomp: daemon.isPodman ? seccompFile(site.folder, architecture) : seccompText(architecture),
    ...(daemon.isPodman && { userProcesses: maxUserProcesses() }),
  });
  const name = containerName(homeId, spec.id);
  for (const { id } of spec.volumes ?? []) await volumes.create(id, spec.resources);
  try {
    await api.call("POST", "/containers/create", { query: { name }, body: config });
    // A container is created with one network.
    for (const { id, aliases } of others) await networks.connect(await networks.createPrivate(id), name, aliases);
    if (first !== undefined && out.network !== null) await networks.connect(out.network, name);
    await api.call("POST", `${sandbox.path}/start`);
    await connections.begin(sandbox, egress);
  } catch (error) {
    if (spec.resources?.diskMb !== undefined && isDockerError(error) && /storage-opt/i.test(error.message))
      throw new PlatformError(
        "sandbox.unsupported",
        `the disk of sandbox '${spec.id}' cannot be limited: ${error.message}; change the storage of the Docker daemon, or remove the limit`,
      );
    throw error;
  }
}

/**
 * Connects to the init and moves its socket out of the folder that the container sees, which is then removed. No program runs yet,
 * so none can have replaced the socket, and none can later write to a folder of this machine.
 */
async function takeInit(sandbox: DockerSandbox, key: KeyObject, signal: AbortSignal): Promise<InitConnection> {
  const inside = runFolder(sandbox.record);
  const path = join(inside, INIT_SOCKET);
  const init = await connectStartingInit({ kind: "unix", path }, key, signal);
  sandbox.useConnection(init);
  renameSync(path, initSocket(sandbox.record));
  rmdirSync(inside);
  return init;
}
