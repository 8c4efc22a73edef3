import type { KeyObject } from "node:crypto";
import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { type EgressPolicy, limitNames, messageOf, PlatformError } from "@aenv/contract";
import {
  type EngineAbilities,
  type EngineEgress,
  noAbilities,
  type Sandbox,
  type SandboxEngine,
  type SandboxRuntime,
  type SandboxSpec,
} from "../engine/engine.ts";
import { openHomeId } from "../host/home-id.ts";
import { waitForLaunchers } from "../host/launcher.ts";
import { joined, once } from "../host/once.ts";
import { identityNow, isRunning, openProcessTable, type ProcessIdentity, type ProcessTable } from "../host/process-table.ts";
import { Records } from "../host/records.ts";
import { removeFolder } from "../host/remove-tree.ts";
import { openInitKey } from "../init/key.ts";
import { EngineWork } from "../lifecycle/engine-work.ts";
import { LimitWatch } from "../lifecycle/limit-watch.ts";
import { assertValid } from "../lifecycle/spec-check.ts";
import { Unseen } from "../lifecycle/unseen.ts";
import { APPENDED } from "../spec/listening.ts";
import { imageDefaults } from "../spec/program.ts";
import { DockerApi } from "./api.ts";
import { BaseImage } from "./base-image.ts";
import { containerName, processesOf } from "./container.ts";
import { DockerContainers, REMOVED } from "./containers.ts";
import { type Daemon, defaultKind, readDaemon } from "./daemon.ts";
import { DockerEgress } from "./egress.ts";
import { ContainerExits } from "./exits.ts";
import { DockerImages } from "./images.ts";
import { DockerNetworks } from "./networks.ts";
import type { DockerEngineOptions } from "./options.ts";
import { filterProblem } from "./packet-filter.ts";
import { checksCallers, PROGRAM_PORT } from "./program-start.ts";
import { createSocketFolders, type DockerRecord, socketsFor } from "./record.ts";
import { DockerSandbox } from "./sandbox.ts";
import { DockerShares } from "./shares.ts";
import { type ContainerSite, startInContainer } from "./start.ts";

const DEFAULT_SOCKET = "/var/run/docker.sock";
const LIMITS_EVERY_MS = 10_000;

/**
 * Sandboxes that are containers of a Docker or Podman engine on this machine. Process 1 of each is our init, which starts the program
 * and everything else. They have no network unless a policy allows connections, and never a published port: the program is reached through the
 * init. They outlive this process, and the next engine on the same home adopts them.
 */
export class DockerEngine implements SandboxEngine {
  readonly name = "docker";
  readonly commands: { readonly key: KeyObject };
  readonly egress: EngineEgress;
  readonly can: EngineAbilities;
  readonly #options: DockerEngineOptions;
  readonly #folder: string;
  readonly #records: Records<DockerRecord>;
  readonly #homeId: string;
  readonly #api: DockerApi;
  readonly #images: DockerImages;
  readonly #base: BaseImage;
  readonly #containers: DockerContainers;
  readonly #networks: DockerNetworks;
  readonly #egress: DockerEgress;
  readonly #shares: DockerShares;
  readonly #exits: ContainerExits;
  readonly #site: ContainerSite;
  readonly #table: ProcessTable = openProcessTable();
  readonly #self: ProcessIdentity;
  /** Also those that are being started. */
  readonly #sandboxes = new Map<string, DockerSandbox>();
  /** The ids of those that are being destroyed. */
  readonly #ending = new Set<string>();
  readonly #work = new EngineWork();
  readonly #limits = new LimitWatch<DockerSandbox>({
    periodMs: LIMITS_EVERY_MS,
    measure: (sandbox) => sandbox.limitUse(),
    limitsOf: ({ record: { memoryMb, processes = null } }) => ({ memoryMb, processes }),
    report: (reached) => this.#options.onLimit?.(reached),
  });
  readonly #openDaemon = once(async () => {
    this.#knownDaemon = await readDaemon(this.#api);
    return this.#knownDaemon;
  });
  /** Null until the first call, with which a server begins. */
  #knownDaemon: Daemon | null = null;
  readonly #adopt = joined(() => this.#adoptAll());
  readonly #unseen = new Unseen<DockerSandbox>();

  constructor(options: DockerEngineOptions) {
    if (process.platform !== "linux")
      throw new PlatformError("sandbox.unsupported", `the docker engine needs a daemon on this machine and Linux, not ${process.platform}`);
    this.#options = options;
    this.can = {
      ...noAbilities,
      runtimes: ["runc", "runsc"],
      images: true,
      folders: true,
      isolates: true,
      // The disk only on some storages of the daemon.
      ownLimits: limitNames.filter((limit) => limit !== "diskMb"),
      capabilities: true,
      findsStrays: true,
      ports: true,
      freezes: true,
      networks: options.runtime !== "runsc",
      tmpfs: true,
    };
    this.egress = {
      // A sandbox with a network reports nothing. One without connections has no egress, and nothing is refused.
      reportsRefused: false,
      // gVisor reads its network at the start, and only rules for it can be changed later.
      changes: options.runtime !== "runsc" || filterProblem(options.socket ?? DEFAULT_SOCKET) === null,
      problem: (policies, runtime) => this.#egressProblem(policies, runtime),
    };
    mkdirSync(join(options.home, "docker"), { recursive: true, mode: 0o700 });
    this.#folder = realpathSync(join(options.home, "docker"));
    this.#homeId = openHomeId(this.#folder);
    this.commands = { key: openInitKey(options.home) };
    this.#self = identityNow(this.#table, process.pid);
    this.#records = new Records(join(this.#folder, "sandboxes"), { noun: "sandbox", format: 1, self: this.#self });
    this.#api = new DockerApi(options.socket ?? DEFAULT_SOCKET);
    this.#images = new DockerImages(this.#api, options);
    this.#base = new BaseImage(this.#images, this.#homeId, options.base);
    this.#containers = new DockerContainers(this.#api, this.#homeId);
    this.#networks = new DockerNetworks(this.#api, this.#homeId, options.log);
    this.#egress = new DockerEgress({
      ...(options.subnet !== undefined && { subnet: options.subnet }),
      ...(options.resolve !== undefined && { resolve: options.resolve }),
      homeId: this.#homeId,
      folder: this.#folder,
      socket: this.#api.socket,
      networks: this.#networks,
      onRefused: options.onRefused,
      sandboxes: () => this.#sandboxes.values(),
      records: () => this.#allRecords(),
      write: (sandbox, change) => this.#write(sandbox, change),
    });
    this.#shares = new DockerShares(this.#api, this.#homeId, this.#networks);
    this.#site = {
      api: this.#api,
      homeId: this.#homeId,
      folder: this.#folder,
      key: this.commands.key,
      options,
      egress: this.#egress,
      networks: this.#networks,
      volumes: this.#shares.volumes,
      daemon: this.#openDaemon,
    };
    this.#exits = new ContainerExits(this.#api, this.#homeId, {
      onExit: (id) => this.#observe(this.#sandboxes.get(id)),
      onGap: () => {
        for (const sandbox of this.#sandboxes.values()) this.#observe(sandbox);
      },
    });
  }

  #egressProblem(policies: readonly EgressPolicy[], runtime: SandboxRuntime | undefined): string | null {
    const daemon = this.#knownDaemon;
    const isRunsc = (runtime ?? this.#options.runtime ?? (daemon === null ? "runc" : defaultKind(daemon))) === "runsc";
    return this.#egress.problem(policies, { runtime: isRunsc ? "runsc" : "runc", isPodman: daemon?.isPodman === true });
  }

  async create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    assertValid(spec, { snapshot: "starts from a snapshot, which the docker engine does not have" });
    return this.#work.start(spec.id, signal, (either) => {
      const record = this.#newRecord(spec);
      // Written before the container exists: after a crash in between, the next engine finds the record.
      this.#records.create(spec.id, record);
      return this.#start(spec, record, either);
    });
  }

  async list(): Promise<readonly Sandbox[]> {
    // They run, but this engine no longer serves their addresses.
    if (this.#work.isClosed) return [];
    await this.#adopt();
    await this.#unseen.removeEnded();
    const listed = [...this.#sandboxes.values()].filter(({ record, hasExited }) => record.isReady && !hasExited);
    this.#unseen.areListed(listed);
    return listed;
  }

  async close(): Promise<void> {
    await this.#work.close();
    await this.#exits.close();
    this.#limits.close();
    for (const sandbox of this.#sandboxes.values()) sandbox.release();
    await this.#egress.close();
    await this.#api.close();
  }

  #newRecord(spec: SandboxSpec): DockerRecord {
    const listening = spec.listening ?? APPENDED;
    return {
      format: 1,
      sockets: socketsFor(this.#records.folderOf(spec.id)),
      runtime: "runc",
      egress: "none",
      ...(spec.networks !== undefined && { networks: spec.networks.map(({ id }) => id) }),
      ...(spec.volumes !== undefined && { volumes: spec.volumes.map(({ id }) => id) }),
      id: spec.id,
      labels: spec.labels,
      memoryMb: spec.resources?.memoryMb ?? null,
      processes: processesOf(spec),
      port: listening.kind === "none" ? null : listening.kind === "port" ? listening.port : PROGRAM_PORT,
      commandDefaults: { cwd: "/", env: {} },
      maker: this.#self,
      isReady: false,
    };
  }

  async #start(spec: SandboxSpec, record: DockerRecord, signal: AbortSignal): Promise<Sandbox> {
    const sandbox = this.#openSandbox(record);
    try {
      createSocketFolders(record);
      const getting = spec.image === undefined ? this.#base.get(spec.id, signal) : this.#images.get(spec.image, signal);
      const [image] = await Promise.all([getting, this.#exits.listening()]);
      sandbox.record = {
        ...record,
        ...(checksCallers(spec, image) && { checksCallers: true }),
        commandDefaults: imageDefaults(image.config),
      };
      await startInContainer({ sandbox, spec, image, site: this.#site, signal });
      sandbox.record = { ...sandbox.record, isReady: true };
      this.#records.write(spec.id, sandbox.record);
      return sandbox;
    } catch (error) {
      this.#forget(sandbox);
      await this.#remove(sandbox.record);
      sandbox.markExited("the sandbox did not start");
      throw error;
    }
  }

  #openSandbox(record: DockerRecord): DockerSandbox {
    const name = containerName(this.#homeId, record.id);
    const sandbox = new DockerSandbox(record, name, this.#api, this.commands.key, {
      destroy: (one) => this.#destroy(one),
      ...(this.egress.changes && {
        setEgress: async (one: DockerSandbox, policy: EgressPolicy) => this.#egress.change(one, policy, await this.#openDaemon()),
      }),
    });
    this.#sandboxes.set(record.id, sandbox);
    if (this.#options.onLimit !== undefined) this.#limits.add(sandbox);
    void sandbox.exited.then(() => this.#limits.delete(sandbox));
    return sandbox;
  }

  #forget(sandbox: DockerSandbox): void {
    if (this.#sandboxes.get(sandbox.id) === sandbox) this.#sandboxes.delete(sandbox.id);
  }

  /** Asks the daemon whether a container has ended, and why. */
  #observe(sandbox: DockerSandbox | undefined): void {
    if (sandbox === undefined || sandbox.hasExited) return;
    void this.#exitReason(sandbox).then(
      (reason) => reason !== null && sandbox.markExited(reason),
      // The daemon does not answer: when its events come again, all containers are inspected.
      () => undefined,
    );
  }

  async #exitReason(sandbox: DockerSandbox): Promise<string | null> {
    const reason = await this.#containers.exitReason(sandbox);
    if (reason !== REMOVED) return reason;
    // Not created yet, or removed by another process.
    return sandbox.record.isReady && !this.#work.isStarting(sandbox.id) ? "the container was removed" : null;
  }

  #destroy(sandbox: DockerSandbox): Promise<void> {
    this.#ending.add(sandbox.id);
    return this.#work.end(this.#end(sandbox).finally(() => this.#ending.delete(sandbox.id)));
  }

  async #end(sandbox: DockerSandbox): Promise<void> {
    sandbox.setExitReason("the sandbox was destroyed");
    try {
      // After a crash in between, the next engine goes on, and does not adopt a container that the daemon is removing.
      const stored = this.#records.find(sandbox.id);
      if (stored !== null) this.#records.write(sandbox.id, { ...stored, isReady: false });
      await this.#remove(sandbox.record);
    } catch (cause) {
      throw new PlatformError("sandbox.destroy_failed", `sandbox '${sandbox.id}' cannot be removed: ${messageOf(cause)}`, { cause });
    }
    sandbox.markExited("the sandbox was destroyed");
    this.#forget(sandbox);
  }

  /** The container first: while its record exists, the next engine finds it. */
  async #remove(record: DockerRecord): Promise<void> {
    const { id, sockets, egress } = record;
    await this.#containers.remove(id);
    await this.#egress.removeOwn(record);
    const others = [...this.#sandboxes.values()].filter((other) => other.id !== id && !this.#ending.has(other.id));
    await this.#shares.removeUnused(
      record,
      others.map((other) => other.record),
    );
    if (sockets !== this.#records.folderOf(id)) await removeFolder(sockets);
    await this.#records.remove(id);
    // Last: of several that end at once, one finds no record of another.
    if (egress === "open") await this.#egress.removeUnusedOpen();
  }

  #write(sandbox: DockerSandbox, change: Partial<DockerRecord>): void {
    sandbox.record = { ...sandbox.record, ...change };
    this.#records.write(sandbox.id, sandbox.record);
  }

  /** Adopts running containers of earlier server processes, and removes what else they left. */
  async #adoptAll(): Promise<void> {
    await Promise.all([this.#exits.listening(), this.#openDaemon()]);
    // Before the folders are read: a container without a folder is then none that is just being created.
    const running = await this.#containers.list();
    const ids = this.#records.ids();
    const removals: Promise<unknown>[] = [this.#records.removeParts(this.#table)];
    for (const id of ids) {
      const held = this.#sandboxes.get(id);
      if (this.#work.isStarting(id)) continue;
      if (held !== undefined) {
        if (!running.get(id)) this.#observe(held);
        await held.forward();
        continue;
      }
      const record = this.#records.find(id);
      if (record?.isReady === true && running.get(id) === true) {
        const adopted = this.#openSandbox(record);
        this.#unseen.add(adopted);
        await this.#egress.adopt(adopted);
        await adopted.forward();
      } else if (record === null || !isRunning(this.#table, record.maker) || (record.isReady && record.maker.pid === this.#self.pid))
        removals.push(this.#removeLeft(record ?? this.#unknownRecord(id)));
    }
    const lost = [...running.keys()].filter((id) => !ids.includes(id));
    for (const id of lost) removals.push(this.#containers.remove(id));
    if (lost.length > 0) removals.push(Promise.allSettled(removals).then(() => this.#shares.removeLost(() => this.#allRecords())));
    // What cannot be removed now is tried again at the next call.
    await Promise.allSettled(removals);
    await this.#egress.removeLeft();
  }

  /** Programs that a killed server was running, such as `nft`, end first, so that nothing is created after this. */
  async #removeLeft(record: DockerRecord): Promise<void> {
    if (!isRunning(this.#table, record.maker)) await waitForLaunchers([record.maker]);
    await this.#remove(record);
  }

  /** Also of other servers of this home. */
  #allRecords(): readonly DockerRecord[] {
    return this.#records.ids().flatMap((id) => this.#records.find(id) ?? []);
  }

  /** Stands for a record that is damaged, as far as removing the sandbox needs it. */
  #unknownRecord(id: string): DockerRecord {
    return { ...this.#newRecord({ id, command: [], variables: {}, labels: {}, startTimeoutMs: 0 }), egress: "open" };
  }
}
