import type { KeyObject } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError, type Resources } from "@aenv/contract";
import type { Architecture } from "../engine/architecture.ts";
import type { SandboxRuntime } from "../engine/engine.ts";
import { identityNow, isRunning, type ProcessIdentity, type ProcessTable } from "../host/process-table.ts";
import { Records } from "../host/records.ts";
import type { InitConnection } from "../init/connection.ts";
import { initKeyArgument } from "../init/key.ts";
import type { SandboxNetwork } from "../network/held-network.ts";
import { namespacePath } from "../network/namespaces.ts";
import type { Networks } from "../network/networks.ts";
import { groupLimits } from "../spec/limits.ts";
import type { SandboxMount } from "../spec/mounts.ts";
import { allDone } from "./all-done.ts";
import { expectAnnouncement } from "./announcement.ts";
import { ControlGroup } from "./cgroups/group.ts";
import type { Hierarchy } from "./cgroups/hierarchy.ts";
import { expectMove } from "./cgroups/moves.ts";
import { ociConfig } from "./config.ts";
import {
  type Container,
  type ContainerRecord,
  type ContainerSpec,
  groupPathOf,
  hasLostFiles,
  homeKey,
  INIT_PORT,
  newContainerId,
  type PreparedContainer,
  type RootFiles,
  storedLimits,
} from "./container.ts";
import { type Connectable, connect, connectNew, connectStarting } from "./container-connection.ts";
import { removeLeftovers, removeSharedFolders } from "./container-leftovers.ts";
import { ContainerRoots, type ContainerRootsOptions, setsUserIds } from "./container-roots.ts";
import { newUserMapping, type RootUser } from "./overlay/mapped.ts";
import { removeRoot, restackRoot, rootPath, type UpperStorage } from "./overlay/root.ts";
import type { OciRuntime, StartedSandbox } from "./runtime/runtime.ts";

export interface ContainersOptions extends Omit<ContainerRootsOptions, "homeKey" | "folderOf"> {
  readonly key: KeyObject;
  readonly initPath: string;
  readonly networks: Networks;
  readonly hierarchy: Hierarchy;
  readonly architecture: Architecture;
  readonly processes: ProcessTable;
  readonly self: ProcessIdentity;
  readonly runtime: (name: SandboxRuntime) => Promise<OciRuntime>;
}

/** One whose process 1 runs. The init is null if it is not connected yet. */
type StartedContainer = PreparedContainer & { readonly init: InitConnection | null };

/** How process 1 starts. */
type Way = "run" | "prepare" | { readonly checkpoint: string };

/** Containers: an overlay root, a network, a control group, and the init as process 1, which starts everything else. */
export class Containers {
  readonly roots: ContainerRoots;
  readonly #options: ContainersOptions;
  readonly #records: Records<ContainerRecord>;
  readonly #homeKey: string;
  readonly #self: ProcessIdentity;

  constructor(options: ContainersOptions) {
    this.#options = options;
    this.#homeKey = homeKey(options.folder);
    this.#self = options.self;
    this.#records = new Records(join(options.folder, "containers"), { noun: "container", format: 1, self: options.self });
    this.roots = new ContainerRoots({ ...options, homeKey: this.#homeKey, folderOf: (id) => this.#records.folderOf(id) });
  }

  /** Resolves when the init is connected. */
  async create(spec: ContainerSpec, signal: AbortSignal): Promise<Container> {
    const { checkpoint } = spec;
    if (checkpoint === undefined) return this.#connected(await this.#started(spec, "run", signal), false, signal);
    return this.#connected(await this.#started(spec, { checkpoint }, signal), true, signal);
  }

  /** One whose processes wait until its control group is thawed. */
  async createFrozen(spec: ContainerSpec, signal: AbortSignal): Promise<Container> {
    const container = await this.create(spec, signal);
    try {
      await container.group.freeze();
      return container;
    } catch (error) {
      await this.discard(container);
      throw error;
    }
  }

  /** Prepares a container for a checkpoint of one with the same files. */
  prepare(spec: ContainerSpec, signal: AbortSignal): Promise<PreparedContainer> {
    return this.#started(spec, "prepare", signal);
  }

  /** Continues a checkpoint in a container that was prepared for it. */
  async restore(prepared: PreparedContainer, checkpoint: string, signal: AbortSignal): Promise<Container> {
    try {
      await this.#run(prepared.record, { checkpoint }, signal);
    } catch (error) {
      await this.remove(prepared.record);
      throw error;
    }
    return this.#connected({ ...prepared, init: null }, true, signal);
  }

  /** If it fails or is aborted, nothing is left. */
  async #started(
    { runtime, files, resources, capabilities, mounts = [], initPath }: ContainerSpec,
    way: Way,
    signal: AbortSignal,
  ): Promise<StartedContainer> {
    const id = newContainerId(this.#homeKey);
    // gVisor stores the changes of a root by itself, and limits them.
    const users = (await this.roots.findMapProblem(runtime)) === null && runtime === "runc" ? newUserMapping() : null;
    const { diskMb } = resources;
    const storage: UpperStorage = diskMb === undefined || runtime === "runsc" ? { kind: "folder" } : { kind: "disk", sizeMb: diskMb };
    const record: ContainerRecord = {
      format: 1,
      id,
      maker: this.#self,
      runtime,
      groupPath: groupPathOf(this.#homeKey, id),
      files,
      storage,
      users,
      ...storedLimits(resources),
      ...(capabilities !== undefined && { capabilities }),
      initPath: initPath ?? this.#options.initPath,
      network: null,
      process: null,
    };
    this.#records.create(id, record);
    let written = record;
    try {
      const taking = this.#options.networks.take(signal).then((taken) => {
        written = { ...written, network: taken.name };
        this.#records.write(id, written);
        return taken;
      });
      const unmapped = async () => {
        written = { ...written, users: null };
        this.#records.write(id, written);
        return written;
      };
      const [network, root] = await allDone([taking, this.#prepare(record, { resources, mounts }, taking, unmapped)]);
      signal.throwIfAborted();
      writeFileSync(
        join(this.#records.folderOf(id), "config.json"),
        JSON.stringify(await this.#configOf(written, network, resources, mounts)),
      );
      using announcement = way === "run" ? expectAnnouncement(this.logPath(id)) : null;
      const running = this.#run(written, way, signal, root).then(({ pid, fileServerPid }) => {
        const fileServer = fileServerPid === undefined ? null : identityNow(this.#options.processes, fileServerPid);
        const complete = { ...written, process: identityNow(this.#options.processes, pid), fileServer };
        written = complete;
        this.#records.write(id, complete);
        return complete;
      });
      const container = this.#connectable(() => written, network);
      const connecting = announcement === null ? null : connectStarting(container, running, announcement, signal);
      const [complete, init] = await allDone([running, connecting]);
      return { record: complete, network, group: this.groupOf(complete), init };
    } catch (error) {
      await this.remove(written);
      throw error;
    }
  }

  /** Connects to the init of a container that was just started. If it fails or is aborted, nothing is left. */
  async #connected(started: StartedContainer, isRestored: boolean, signal: AbortSignal): Promise<Container> {
    const { record, network } = started;
    try {
      const init =
        started.init ??
        (await connectNew(
          this.#connectable(() => record, network),
          signal,
          { isRestored },
        ));
      return { ...started, init };
    } catch (error) {
      await this.remove(record);
      throw error;
    }
  }

  /** Connects to a container of an earlier engine; null if it does not run or does not answer. */
  async open(record: ContainerRecord, signal: AbortSignal): Promise<Container | null> {
    const { process, network: name } = record;
    if (process === null || name === null || !this.isRunning(record)) return null;
    try {
      const group = this.groupOf(record);
      // The server that froze it is gone, and a frozen init does not answer.
      if (await group.isFrozen()) await group.thaw();
      const network = await this.#options.networks.find(name);
      if (network === null) return null;
      return {
        record: { ...record, process },
        network,
        init: await connect(
          this.#connectable(() => record, network),
          signal,
        ),
        group,
      };
    } catch {
      return null;
    }
  }

  find(id: string): ContainerRecord | null {
    return this.#records.find(id);
  }

  /**
   * The record as it is now: another process may have made the changes of the container a layer since. Throws if it was interrupted.
   */
  current({ id }: ContainerRecord): ContainerRecord {
    const record = this.#records.find(id);
    if (record !== null && record.isRestacking !== true) return record;
    if (record === null) throw new PlatformError("sandbox.lost", `container ${id} was removed`);
    throw new PlatformError(
      "sandbox.unsupported",
      `the files of container ${id} cannot be stored: a server ended while it stored them; destroy the sandbox`,
    );
  }

  /**
   * Makes the changes of a frozen container a layer, without a copy. Null if that is not possible: they can be copied then. Its init must be its
   * only process.
   */
  async restack(container: ContainerRecord & { readonly process: ProcessIdentity }): Promise<RootFiles | null> {
    const { layers } = this.#options;
    const record = this.current(container);
    const { id, files } = record;
    this.#records.write(id, { ...record, isRestacking: true });
    const restacked = await restackRoot(this.roots.of(record), layers, { pid: container.process.pid, holder: id });
    if (restacked === null) {
      this.#records.write(id, record);
      return null;
    }
    const after = { ...files, layers: restacked };
    this.#records.write(id, { ...record, files: after });
    return after;
  }

  /**
   * Gives a container without files, in which nothing was started yet, the files of an image: that is faster than a new container. Null if it is
   * not possible; the container is removed then.
   */
  async withFiles(blank: Container, files: RootFiles): Promise<Container | null> {
    const record = { ...blank.record, files };
    try {
      if (await this.#replaceRoot(record, blank.network, { pid: record.process.pid, isFileServer: false })) return { ...blank, record };
    } catch (error) {
      await this.discard(blank);
      throw error;
    }
    await this.discard(blank);
    return null;
  }

  /** The same for a container that was prepared: it is started with these files. */
  async startWithFiles(blank: PreparedContainer, files: RootFiles, signal: AbortSignal): Promise<Container | null> {
    const record = { ...blank.record, files };
    try {
      const runtime = await this.#options.runtime(record.runtime);
      const pid = record.fileServer?.pid;
      if (pid !== undefined && runtime.startPrepared !== undefined) {
        if (await this.#replaceRoot(record, blank.network, { pid, isFileServer: true })) {
          using announcement = expectAnnouncement(this.logPath(record.id));
          const starting = runtime.startPrepared(record.id, signal);
          const container = this.#connectable(() => record, blank.network);
          const [init] = await allDone([connectStarting(container, starting, announcement, signal), starting]);
          return { ...blank, record, init };
        }
      }
    } catch (error) {
      await this.remove(record);
      throw error;
    }
    await this.remove(record);
    return null;
  }

  async #replaceRoot(record: ContainerRecord, network: SandboxNetwork, user: RootUser): Promise<boolean> {
    await this.#options.layers.use(record.id, record.files.layers);
    this.#records.write(record.id, record);
    return this.roots.replace(record, network, user);
  }

  async discard({ init, record }: Container): Promise<void> {
    await init.close();
    await this.remove(record);
  }

  groupOf({ groupPath }: ContainerRecord): ControlGroup {
    return new ControlGroup(this.#options.hierarchy, groupPath);
  }

  isRunning(record: ContainerRecord): boolean {
    return record.process !== null && isRunning(this.#options.processes, record.process) && !hasLostFiles(this.#options.processes, record);
  }

  /** What the init itself printed. */
  logPath(id: string): string {
    return join(this.#records.folderOf(id), "init-log");
  }

  /** Ends all processes and removes all resources. Idempotent; the record goes last, so that after a crash it is done again. */
  async remove(record: ContainerRecord): Promise<void> {
    const { id, network } = record;
    const group = this.groupOf(record);
    await group.kill();
    await (await this.#options.runtime(record.runtime)).remove(id);
    await group.remove();
    await allDone([removeRoot(this.roots.of(record)), network === null ? null : this.#options.networks.remove(network)]);
    await this.#options.layers.release(id);
    await this.#records.remove(id);
  }

  /** Removes containers and other resources of ended processes that are not in `used`. */
  collect(used: ReadonlySet<string>): Promise<void> {
    const remove = (record: ContainerRecord) => this.remove(record);
    return removeLeftovers({ ...this.#options, homeKey: this.#homeKey, records: this.#records, remove }, used);
  }

  removeShared(): Promise<void> {
    return removeSharedFolders(this.#options.hierarchy, this.#homeKey);
  }

  async #run(record: ContainerRecord, way: Way, signal: AbortSignal, root?: object): Promise<StartedSandbox> {
    const { id, runtime: name, diskMb = null } = record;
    const runtime = await this.#options.runtime(name);
    const bundle = this.#records.folderOf(id);
    const own = { setsUserIds: setsUserIds(record), ...(diskMb !== null && { diskMb }) };
    const options = { logPath: this.logPath(id), signal, root, ...own };
    if (way === "run") return runtime.run(id, bundle, options);
    if (runtime.restore === undefined || runtime.prepare === undefined)
      throw new PlatformError("sandbox.unsupported", `a snapshot with memory cannot be continued with the runtime ${name}; use runsc`);
    return way === "prepare" ? runtime.prepare(id, bundle, options) : runtime.restore(id, bundle, way.checkpoint, options);
  }

  /** Returns its root, if the mount of it is left to the start. */
  async #prepare(
    record: ContainerRecord,
    { resources, mounts }: Required<Pick<ContainerSpec, "resources" | "mounts">>,
    network: Promise<SandboxNetwork>,
    unmapped: () => Promise<ContainerRecord>,
  ): Promise<object | undefined> {
    // Throws for a limit that is not valid, before anything is created.
    const inGroup = groupLimits(resources, record.runtime);
    await this.#options.layers.use(record.id, record.files.layers);
    const mounted = async () => this.roots.prepare(record, mounts, await network, unmapped);
    const grouped = async () => {
      await this.groupOf(record).create(inGroup);
      void expectMove(this.#options.hierarchy);
    };
    const [root] = await allDone([mounted(), grouped()]);
    return root;
  }

  async #configOf(
    record: ContainerRecord,
    network: SandboxNetwork,
    resources: Resources,
    mounts: readonly SandboxMount[],
  ): Promise<object> {
    const { architecture, key } = this.#options;
    const { compiledFilter = null } = await this.#options.runtime(record.runtime);
    const isMapped = record.users != null;
    return ociConfig({
      runtime: record.runtime,
      architecture,
      hostname: record.id,
      rootPath: rootPath(this.roots.of(record)),
      initPath: record.initPath,
      // All addresses: a fork of this sandbox has another one.
      initArguments: ["--listen", `tcp:0.0.0.0:${INIT_PORT}`, "--key", initKeyArgument(key)],
      networkNamespace: namespacePath(network.name),
      userMapping: record.users ?? null,
      isSysMounted: isMapped,
      // The root of a sandbox with users of its own has the folders of this machine already.
      mounts: [...(record.files.mounts ?? []), ...mounts].filter(({ kind }) => !isMapped || kind !== "bind"),
      ...(record.capabilities !== undefined && { capabilities: record.capabilities }),
      compiledFilter,
      resources,
      groupPath: record.groupPath,
    });
  }

  #connectable(current: () => ContainerRecord, network: SandboxNetwork): Connectable {
    return { current, network, key: this.#options.key, isRunning: (record) => this.isRunning(record) };
  }
}
