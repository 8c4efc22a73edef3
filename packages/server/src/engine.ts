import { existsSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";
import { PlatformError, parseDuration } from "@aenv/contract";
import {
  type BaseRoot,
  baseRunnerCommand,
  DockerEngine,
  KubernetesEngine,
  OciEngine,
  openBaseRoot,
  ProcessEngine,
  type ReachedLimit,
  type RefusedConnection,
  type RootFiles,
  readServiceTemplates,
  readTemplates,
  type SandboxEngine,
  type UnpackLimits,
} from "@aenv/sandbox";
import { clusterAccess } from "./cluster-access.ts";
import type { ServerConfig } from "./config/config.ts";
import { lockHome } from "./peers/home-lock.ts";
import { SharedFolders } from "./task-sandboxes/shared-folders.ts";

export interface OpenEngineOptions {
  readonly config: ServerConfig;
  /** Receives what the engine reports, such as the progress of pulls. */
  readonly log: (line: string) => void;
  /** Receives what the operator should change; `log` by default. */
  readonly warn?: (line: string) => void;
  readonly onRefused: (refused: RefusedConnection) => void;
  readonly onLimit: (reached: ReachedLimit) => void;
  /** With the engine kubernetes: the time from the request to a sandbox that answers. */
  readonly onReady?: (durationMs: number) => void;
  /** Environment variables of this process: programs that pull images get those for proxies and certificates. */
  readonly machineVariables?: Readonly<Record<string, string | undefined>> | undefined;
  /** The command line of the blank runner as a process of this machine. */
  readonly runner: readonly string[];
  /** The runner as one file of JavaScript, for sandboxes that do not see the files of this machine. */
  readonly runnerCode?: (() => Promise<string>) | undefined;
}

/** The engine of the configuration, and the command line of the blank runner in its sandboxes. */
export function openEngine(options: OpenEngineOptions): { engine: SandboxEngine; runner: readonly string[] } {
  const { config, runner } = options;
  switch (config.engine) {
    case "process":
      for (const name of ["cpus", "diskMb", "processes"] as const)
        if (config[name] !== null)
          throw new PlatformError(
            "request.invalid",
            `the setting ${name} is ${config[name]}, and the engine process cannot limit that; choose the engine oci or docker, or remove the setting`,
          );
      return { engine: new ProcessEngine({ home: config.home, useInit: config.processCommands }), runner };
    case "oci":
      return { engine: openOci(options), runner: baseRunnerCommand };
    case "docker":
      return { engine: openDocker(options), runner: baseRunnerCommand };
    case "kubernetes":
      return { engine: openKubernetes(options), runner: baseRunnerCommand };
  }
}

/** Destroys the sandboxes that a killed server has left in its home, for homes that no server will use again. */
export async function destroySandboxes(config: ServerConfig): Promise<void> {
  const unlock = lockHome(config.home);
  const ignore = () => undefined;
  const { engine } = openEngine({ config, runner: [], runnerCode: async () => "", log: ignore, onRefused: ignore, onLimit: ignore });
  try {
    await Promise.all((await engine.list()).map((sandbox) => sandbox.destroy()));
    const folders = new SharedFolders(config.home, engine);
    for (const id of await folders.list()) await folders.remove(id);
  } finally {
    await engine.close();
    unlock();
  }
}

function openOci(options: OpenEngineOptions): OciEngine {
  const { home, dataDir, runtime, runc, runsc, sandboxesReady, poolTotal, minAvailableMemoryMb } = options.config;
  const { registryAuth, imageRegistries, insecureRegistries, sandboxUsers, sandboxSubnet, imageStore, snapshotSpaceMb } = options.config;
  const { taskCapabilities } = options.config;
  const openBase = baseOf(options);
  return new OciEngine({
    home,
    runtime,
    poolSize: sandboxesReady,
    poolTotal,
    hasMemory: () => freemem() >= minAvailableMemoryMb * 2 ** 20,
    users: sandboxUsers,
    capabilityLimit: taskCapabilities,
    log: options.warn ?? options.log,
    snapshotSpaceMb,
    onRefused: options.onRefused,
    onLimit: options.onLimit,
    ...(runc !== null && { runcPath: runc }),
    ...(runsc !== null && { runscPath: runsc }),
    ...(sandboxSubnet !== null && { subnet: sandboxSubnet }),
    ...(imageStore !== null && { storeFolder: imageStore }),
    images: {
      imageRegistries,
      insecureRegistries,
      unpackLimits: imageLimits(options.config),
      ...(registryAuth !== null && { authFile: registryAuth }),
      ...(options.machineVariables !== undefined && { variables: options.machineVariables }),
    },
    base: async (layers): Promise<RootFiles> => {
      const base = await openBase();
      await base.addTo(layers, AbortSignal.timeout(UNPACK_MS));
      // The benchmarks find their data at the same path.
      const data = existsSync(dataDir) ? [{ kind: "bind", source: dataDir, target: dataDir, isReadOnly: true } as const] : [];
      return { layers: [base.digest], config: null, mounts: data };
    },
  });
}

/** What unpacking an image of the engine oci may take. */
export function imageLimits({ imageBytes, imageEntries, minFreeDisk }: ServerConfig): Partial<UnpackLimits> {
  return { imageBytes, imageEntries, freeDiskBytes: minFreeDisk };
}

function openDocker(options: OpenEngineOptions): DockerEngine {
  const { home, dataDir, runtime, dockerSocket, registryAuth, imageRegistries, insecureRegistries, sandboxSubnet } = options.config;
  return new DockerEngine({
    home,
    capabilityLimit: options.config.taskCapabilities,
    socket: dockerSocket,
    base: baseOf(options),
    folders: [dataDir],
    imageRegistries,
    insecureRegistries,
    log: options.log,
    onRefused: options.onRefused,
    onLimit: options.onLimit,
    ...(runtime === "runsc" && { runtime }),
    ...(sandboxSubnet !== null && { subnet: sandboxSubnet }),
    ...(registryAuth !== null && { authFile: registryAuth }),
  });
}

function openKubernetes({ config, log, onLimit, onReady }: OpenEngineOptions): KubernetesEngine {
  const { home, baseImage, podTemplates, kubeGroup, kubeNetworkPolicies, initKeyFile, runscClass, runtime, processes } = config;
  if (baseImage === null)
    throw new PlatformError(
      "request.invalid",
      "the engine kubernetes needs an image for environments without one: build it as deploy/images describes, and name it with --base-image",
    );
  if (processes !== null)
    throw new PlatformError(
      "request.invalid",
      `the setting processes is ${processes}, and the engine kubernetes cannot limit that: set podPidsLimit of the nodes' kubelets, and remove the setting`,
    );
  return new KubernetesEngine({
    home,
    access: clusterAccess(config),
    namespace: config.kubeNamespace,
    baseImage,
    imageRegistries: config.imageRegistries,
    insecureRegistries: config.insecureRegistries,
    templates: readTemplates(podTemplates),
    serviceTemplates: readServiceTemplates(podTemplates),
    domainSuffix: config.kubeDomainSuffix,
    networkPolicies: kubeNetworkPolicies,
    runtime,
    unschedulableMs: parseDuration(config.nodeWait),
    pool: { min: config.sandboxesReady, max: podPoolMax(config), total: config.poolTotal, idleMs: POOL_IDLE_MS },
    log,
    onLimit,
    ...(onReady !== undefined && { onReady }),
    ...(kubeGroup !== null && { group: kubeGroup }),
    ...(initKeyFile !== null && { initKeyFile }),
    ...(runscClass !== null && { runscClass }),
  });
}

/** Without pods that wait when nothing is in use, none waits at all. */
function podPoolMax({ sandboxesReady, poolMax }: ServerConfig): number {
  return sandboxesReady === 0 ? 0 : Math.max(sandboxesReady, poolMax);
}

/** Opens the files of sandboxes without an image, once. */
function baseOf({ config, runnerCode }: OpenEngineOptions): () => Promise<BaseRoot> {
  if (runnerCode === undefined) throw new PlatformError("internal", `the engine ${config.engine} needs the code of the runner`);
  let opening: Promise<BaseRoot> | undefined;
  const open = async () => openBaseRoot({ folder: join(config.home, "base-root"), runner: await runnerCode() });
  return () => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
}

const UNPACK_MS = 120_000;
/** Images that no sandbox was started from for so long have no waiting pods. */
const POOL_IDLE_MS = 5 * 60_000;
