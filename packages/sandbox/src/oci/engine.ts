import type { KeyObject } from "node:crypto";
import { existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { limitNames, messageOf, PlatformError, type Resources } from "@aenv/contract";
import {
  type EngineAbilities,
  type EngineDisks,
  type EngineEgress,
  type EngineSnapshots,
  noAbilities,
  type Sandbox,
  type SandboxAddress,
  type SandboxEngine,
  type SandboxRuntime,
  type SandboxSnapshot,
  type SandboxSpec,
  type SnapshotFidelity,
} from "../engine/engine.ts";
import { joined, once } from "../host/once.ts";
import { identityNow, isRunning, openProcessTable, type ProcessIdentity, type ProcessTable } from "../host/process-table.ts";
import { Records } from "../host/records.ts";
import { initKeyArgument, openInitKey } from "../init/key.ts";
import { EngineWork } from "../lifecycle/engine-work.ts";
import { LimitWatch } from "../lifecycle/limit-watch.ts";
import { PeriodicChecks } from "../lifecycle/periodic-checks.ts";
import { assertValid } from "../lifecycle/spec-check.ts";
import { Unseen } from "../lifecycle/unseen.ts";
import { DEFAULT_PROCESSES } from "../spec/limits.ts";
import { APPENDED } from "../spec/listening.ts";
import { Adoption } from "./adoption.ts";
import { type Container, type ContainerSpec, groupPathOf, hasLostFiles, homeKey, mappedFolder, newContainerId } from "./container.ts";
import { type ContainerSource, containerFor } from "./container-choice.ts";
import { DEFAULTS, type OciEngineOptions, type OciSettings } from "./options.ts";
import { mountDisk } from "./overlay/disk.ts";
import { unmount } from "./overlay/mount.ts";
import { openParts, type Parts } from "./parts.ts";
import { addressOf, assertProgram, runProgram } from "./program-start.ts";
import { openRuntime } from "./runtime/open.ts";
import type { OciRuntime } from "./runtime/runtime.ts";
import { OciSandbox, type SandboxRecord } from "./sandbox.ts";
import { takeSnapshot } from "./snapshots/take.ts";
import { exportSnapshot, importSnapshot, type Site } from "./snapshots/transfer.ts";

const COLLECT_EVERY_MS = 30 * 60_000;
/** Also without starts: containers that nobody has asked for, and those that wait while memory is short, are removed. */
const FILL_EVERY_MS = 60_000;
const LIMITS_EVERY_MS = 5_000;
/** The first command of a new sandbox comes first. */
const FILL_AFTER_MS = 100;

/**
 * Sandboxes with their own files, processes, network and limits, run by runc or by runsc. Process 1 of each is our init, which starts
 * the program and everything else. They outlive this process. Other server processes on the same home find them, and take them over when this one
 * has ended.
 */
export class OciEngine implements SandboxEngine {
  readonly name = "oci";
  readonly commands: { readonly key: KeyObject };
  readonly can: EngineAbilities = {
    ...noAbilities,
    images: true,
    folders: true,
    isolates: true,
    ownLimits: limitNames,
    capabilities: true,
    findsStrays: true,
    ports: true,
    freezes: true,
    tmpfs: true,
    runtimes: ["runc", "runsc"],
  };
  readonly egress: EngineEgress = { reportsRefused: true, changes: true };
  readonly snapshots: EngineSnapshots = {
    // Memory only of sandboxes with runsc.
    fidelities: ["files", "memory"],
    remove: (id) => this.#removeSnapshot(id),
    export: async (id) => exportSnapshot(id, await this.#site()),
    import: async (description, open, signal) => importSnapshot(description, open, signal, await this.#site()),
  };
  readonly disks: EngineDisks = {
    mount: (disk, folder, sizeMb) => mountDisk(disk, realpathSync(folder), sizeMb),
    unmount: async (folder) => {
      if (existsSync(folder)) await unmount(realpathSync(folder));
    },
  };
  readonly #options: OciSettings;
  readonly #folder: string;
  readonly #records: Records<SandboxRecord>;
  readonly #processes: ProcessTable = openProcessTable();
  readonly #self: ProcessIdentity;
  readonly #runtimes = new Map<SandboxRuntime, Promise<OciRuntime>>();
  readonly #sandboxes = new Map<string, OciSandbox>();
  readonly #unseen = new Unseen<OciSandbox>();
  readonly #work = new EngineWork();
  // A kernel of gVisor that was killed closes no connections, and one without its files goes on, so their end is not seen otherwise.
  readonly #running = new PeriodicChecks<OciSandbox>(500, (sandbox) => {
    const { record, init } = sandbox.container;
    if (!isRunning(this.#processes, record.process)) void init.close();
    else if (hasLostFiles(this.#processes, record)) {
      // Not at once: the file server of a kernel that was killed may end a moment before it.
      if (this.#withoutFiles.has(sandbox)) sandbox.endWithoutFiles();
      this.#withoutFiles.add(sandbox);
    }
  });
  readonly #withoutFiles = new WeakSet<OciSandbox>();
  readonly #limits = new LimitWatch<OciSandbox>({
    periodMs: LIMITS_EVERY_MS,
    measure: (sandbox) => sandbox.limitUse(),
    limitsOf: (sandbox) => sandbox.knownLimits,
    report: (reached) => this.#options.onLimit?.(reached),
  });
  readonly #adoption: Adoption;
  #parts: Parts | undefined;
  #filling: NodeJS.Timeout | undefined;
  #opened: Promise<Parts> | undefined;
  readonly #adopt = joined(async () => this.#adoption.adopt((await this.#open()).containers));
  /** Before the first container is created, so that what earlier engines left is told apart from what this one creates. */
  readonly #adoptFirst = once(() => this.#adopt());
  #collecting: NodeJS.Timeout | undefined;
  #tidying: NodeJS.Timeout | undefined;

  constructor(options: OciEngineOptions) {
    mkdirSync(join(options.home, "oci"), { recursive: true, mode: 0o700 });
    this.#folder = realpathSync(join(options.home, "oci"));
    this.#options = { ...DEFAULTS, ...options };
    this.commands = { key: openInitKey(options.home) };
    this.#self = identityNow(this.#processes, process.pid);
    this.#records = new Records(join(this.#folder, "sandboxes"), { noun: "sandbox", format: 1, self: this.#self });
    this.#adoption = new Adoption({
      records: this.#records,
      sandboxes: this.#sandboxes,
      unseen: this.#unseen,
      processes: this.#processes,
      self: this.#self,
      work: this.#work,
      open: (record, container, address) => this.#openSandbox(record, container, address),
    });
  }

  /** How many containers wait for a program or for the memory of a snapshot. */
  get waitingContainers(): number {
    return this.#pools().reduce((sum, { size }) => sum + size, 0);
  }

  /** Creates what the pools of containers and networks lack, as is done after each start. Never rejects. */
  async fillPools(): Promise<void> {
    if (this.#work.isClosed) return;
    await Promise.all(this.#pools().map((pool) => pool.fill()));
    await this.#parts?.networks.refill();
  }

  async create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    assertValid(spec);
    assertProgram(spec);
    return this.#work.start(spec.id, signal, (either) => {
      this.#records.create(spec.id, this.#newRecord(spec));
      return this.#start(spec, either).finally(() => this.#fillSoon());
    });
  }

  async list(): Promise<readonly Sandbox[]> {
    await this.#adopt();
    await this.#unseen.removeEnded();
    const listed = [...this.#sandboxes.values()].filter(({ hasExited }) => !hasExited);
    this.#unseen.areListed(listed);
    return listed;
  }

  async #removeSnapshot(id: string): Promise<void> {
    const { snapshots, pools } = await this.#open();
    const checkpoint = snapshots.memoryFolder(id);
    const layer = snapshots.highestLayerOf(id);
    // Those that wait would keep its files.
    const isRemoved = (spec: ContainerSpec) => spec.checkpoint === checkpoint || (layer !== null && spec.files.layers.at(-1) === layer);
    for (const pool of Object.values(pools)) await pool.forget(isRemoved);
    await snapshots.remove(id);
  }

  async close(): Promise<void> {
    clearInterval(this.#collecting);
    clearInterval(this.#tidying);
    clearTimeout(this.#filling);
    await this.#work.close();
    await this.#unseen.removeEnded();
    const parts = await this.#opened?.catch(() => undefined);
    await Promise.all(this.#pools().map((pool) => pool.close()));
    this.#running.close();
    this.#limits.close();
    for (const sandbox of this.#sandboxes.values()) await this.#leave(sandbox);
    await parts?.networks.close();
    await parts?.containers.removeShared();
  }

  #pools(): readonly { readonly size: number; fill(): Promise<void>; close(): Promise<void> }[] {
    return this.#parts === undefined ? [] : Object.values(this.#parts.pools);
  }

  /** When no sandbox starts: it would take longer if others were created at the same time. */
  #fillSoon(): void {
    this.#filling ??= setTimeout(() => {
      this.#filling = undefined;
      if (!this.#work.isStartingAny) void this.fillPools();
    }, FILL_AFTER_MS).unref();
  }

  #open(): Promise<Parts> {
    this.#opened ??= this.#openParts().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  async #openParts(): Promise<Parts> {
    const parts = await openParts({
      settings: this.#options,
      folder: this.#folder,
      key: this.commands.key,
      processes: this.#processes,
      self: this.#self,
      runtime: (name) => this.#runtime(name),
      onRefused: ({ network, host, port }) => {
        const sandbox = [...this.#sandboxes.values()].find(({ container }) => container.network.name === network);
        if (sandbox !== undefined) this.#options.onRefused?.({ sandboxId: sandbox.id, host, port });
      },
    });
    this.#parts = parts;
    const collect = () => void parts.layers.collect(new Date(Date.now() - this.#options.keepImagesMs)).catch(() => undefined);
    // Also what an earlier server left that was killed.
    collect();
    this.#collecting = setInterval(collect, COLLECT_EVERY_MS).unref();
    this.#tidying = setInterval(() => this.#fillSoon(), FILL_EVERY_MS).unref();
    return parts;
  }

  async #source(): Promise<ContainerSource> {
    const { runtime, base } = this.#options;
    return {
      parts: await this.#open(),
      defaultRuntime: runtime,
      runtime: (name) => this.#runtime(name),
      base,
      onPull: (id, image) => writeFileSync(this.#logPath(id), `pulling the image ${image}\n`, { flag: "a", mode: 0o600 }),
    };
  }

  async #site(): Promise<Site> {
    const { layers, snapshots, initPath } = await this.#open();
    return {
      layers,
      snapshots,
      architecture: process.arch,
      initPath,
      key: initKeyArgument(this.commands.key),
      runtime: (name) => this.#runtime(name),
      baseMounts: async () => (await this.#options.base(layers)).mounts ?? [],
    };
  }

  #runtime(name: SandboxRuntime): Promise<OciRuntime> {
    const known = this.#runtimes.get(name);
    if (known !== undefined) return known;
    const { runcPath, runscPath } = this.#options;
    const path = name === "runsc" ? runscPath : runcPath;
    const program = path === undefined ? {} : { program: path };
    const key = homeKey(this.#folder);
    const opened = openRuntime(name, {
      root: join(this.#folder, "runtime", name),
      sharedFolder: mappedFolder(key),
      trialGroup: () => groupPathOf(key, newContainerId(key)),
      ...program,
    });
    this.#runtimes.set(name, opened);
    // It may have been installed when the next sandbox asks for it.
    opened.catch(() => this.#runtimes.delete(name));
    return opened;
  }

  #newRecord(spec: SandboxSpec): SandboxRecord {
    return {
      format: 1,
      id: spec.id,
      labels: spec.labels,
      createdAt: new Date().toISOString(),
      keeper: this.#self,
      container: null,
      address: null,
      program: null,
      limits: this.#resourcesOf(spec),
      isReady: false,
    };
  }

  #resourcesOf({ resources }: SandboxSpec): Resources {
    const { defaults = {} } = this.#options;
    const mostProcesses = defaults.processes ?? DEFAULT_PROCESSES;
    return { ...defaults, ...resources, processes: Math.min(resources?.processes ?? mostProcesses, mostProcesses) };
  }

  async #start(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    let sandbox: OciSandbox | undefined;
    try {
      await this.#adoptFirst();
      const container = await containerFor(spec, this.#resourcesOf(spec), await this.#source(), signal);
      sandbox = this.#newSandbox(spec, container);
      if (spec.egress !== undefined && spec.egress !== "none") await container.network.setEgress(spec.egress);
      const { snapshots } = await this.#open();
      await runProgram({
        sandbox,
        spec,
        memory: spec.snapshot === undefined ? null : snapshots.get(spec.snapshot).memory,
        logPath: this.#logPath(spec.id),
        write: (record) => this.#records.write(spec.id, record),
        signal,
      });
      this.#records.write(spec.id, sandbox.setRecord({ isReady: true }));
      this.#sandboxes.set(spec.id, sandbox);
      return sandbox;
    } catch (error) {
      await (sandbox === undefined ? this.#records.remove(spec.id) : this.#end(sandbox));
      throw error;
    }
  }

  #newSandbox(spec: SandboxSpec, container: Container): OciSandbox {
    const address = addressOf(spec.listening ?? APPENDED, container);
    const record = { ...this.#newRecord(spec), container: container.record.id, address };
    this.#records.write(spec.id, record);
    const sandbox = this.#openSandbox(record, container, address);
    sandbox.keep();
    return sandbox;
  }

  #openSandbox(record: SandboxRecord, container: Container, address: SandboxAddress): OciSandbox {
    const sandbox = new OciSandbox({
      record,
      container,
      address,
      logPath: this.#logPath(record.id),
      logBytes: this.#options.logBytes,
      release: async () => (await this.#open()).containers.remove(container.record),
      snapshot: (one, fidelity, signal) => this.#snapshot(one, fidelity, signal),
      destroy: (one) => this.#work.end(this.#end(one)),
    });
    this.#running.add(sandbox);
    if (this.#options.onLimit !== undefined) this.#limits.add(sandbox);
    void sandbox.exited.then(() => {
      this.#running.delete(sandbox);
      this.#limits.delete(sandbox);
    });
    return sandbox;
  }

  async #snapshot({ container, record }: OciSandbox, fidelity: SnapshotFidelity, signal: AbortSignal): Promise<SandboxSnapshot> {
    const { containers, layers, snapshots } = await this.#open();
    const subject = {
      container,
      root: () => containers.roots.of(containers.current(container.record)),
      restack: () => containers.restack(container.record),
      runtime: await this.#runtime(container.record.runtime),
      program: record.program,
    };
    return takeSnapshot(subject, fidelity, { layers, snapshots, signal });
  }

  async #end(sandbox: OciSandbox): Promise<void> {
    sandbox.setExitReason("the sandbox was destroyed");
    try {
      await sandbox.detach();
      await sandbox.release();
      sandbox.markExited("the sandbox was destroyed");
      await this.#records.remove(sandbox.id);
    } catch (cause) {
      throw new PlatformError("sandbox.destroy_failed", `sandbox '${sandbox.id}' cannot be removed: ${messageOf(cause)}`, { cause });
    }
    if (this.#sandboxes.get(sandbox.id) === sandbox) this.#sandboxes.delete(sandbox.id);
  }

  /** At the end of the engine: a running sandbox goes on without it. */
  async #leave(sandbox: OciSandbox): Promise<void> {
    if (sandbox.hasExited) return sandbox.release().catch(() => undefined);
    await sandbox.leave();
    if (sandbox.isKept) this.#records.write(sandbox.id, sandbox.setRecord({ keeper: null }));
  }

  #logPath(id: string): string {
    return join(this.#records.folderOf(id), "log");
  }
}
