import type { KeyObject } from "node:crypto";
import { existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import type { Readable } from "node:stream";
import { messageOf, PlatformError, TimedSignal } from "@aenv/contract";
import {
  type EngineAbilities,
  type ExportedSnapshot,
  type Listening,
  noAbilities,
  type Sandbox,
  type SandboxAddress,
  type SandboxEngine,
  type SandboxRuntime,
  type SandboxSnapshot,
  type SandboxSpec,
  type SnapshotDescription,
  type SnapshotFidelity,
  type SnapshotPart,
} from "../engine/engine.ts";
import { joined, once } from "../host/once.ts";
import { identityOf, isRunning, openProcessTable, type ProcessIdentity, type ProcessTable } from "../host/process-table.ts";
import { Records } from "../host/records.ts";
import { initKeyArgument, openInitKey } from "../init/key.ts";
import { EngineWork } from "../lifecycle/engine-work.ts";
import { LimitWatch } from "../lifecycle/limit-watch.ts";
import { PeriodicChecks } from "../lifecycle/periodic-checks.ts";
import { assertValid } from "../lifecycle/spec-check.ts";
import { startFailed } from "../lifecycle/start-errors.ts";
import { Unseen } from "../lifecycle/unseen.ts";
import type { Limits } from "../spec/limits.ts";
import { DEFAULT_PROCESSES } from "../spec/limits.ts";
import { mainProgram } from "../spec/program.ts";
import { type Container, type ContainerSpec, groupPathOf, hasLostFiles, homeKey, mappedFolder, newContainerId } from "./container.ts";
import { type ContainerSource, containerFor } from "./container-choice.ts";
import type { Containers } from "./containers.ts";
import { DEFAULTS, type OciEngineOptions, type OciSettings } from "./options.ts";
import { mountDisk } from "./overlay/disk.ts";
import { unmount } from "./overlay/mount.ts";
import { openParts, type Parts } from "./parts.ts";
import {
  APPENDED,
  addHosts,
  addressOf,
  assertProgram,
  makeWorkingDirectory,
  startProgram,
  untilReady,
  withAddress,
} from "./program-start.ts";
import { openRuntime } from "./runtime/open.ts";
import type { OciRuntime } from "./runtime/runtime.ts";
import { OciSandbox, type SandboxRecord } from "./sandbox.ts";
import { describeCut } from "./snapshots/connections.ts";
import { takeSnapshot } from "./snapshots/take.ts";
import { exportSnapshot, importSnapshot, type Site } from "./snapshots/transfer.ts";

const ADOPT_MS = 10_000;
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
  readonly initKey: KeyObject;
  readonly can: EngineAbilities = {
    ...noAbilities,
    images: true,
    folders: true,
    isolates: true,
    limits: true,
    ownLimits: ["cpus", "memoryMb", "diskMb", "shmMb"],
    capabilities: true,
    findsStrays: true,
    ports: true,
    commands: true,
    freezes: true,
    // Memory only of sandboxes with runsc.
    snapshots: ["files", "memory"],
    exportsSnapshots: true,
    tmpfs: true,
    egress: true,
    reportsRefused: true,
    changesEgress: true,
    runtimes: ["runc", "runsc"],
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
  #parts: Parts | undefined;
  #filling: NodeJS.Timeout | undefined;
  #opened: Promise<Parts> | undefined;
  readonly #adopt = joined(() => this.#adoptAll());
  /** Before the first container is created, so that what earlier engines left is told apart from what this one creates. */
  readonly #adoptFirst = once(() => this.#adopt());
  #collecting: NodeJS.Timeout | undefined;
  #tidying: NodeJS.Timeout | undefined;

  constructor(options: OciEngineOptions) {
    mkdirSync(join(options.home, "oci"), { recursive: true, mode: 0o700 });
    this.#folder = realpathSync(join(options.home, "oci"));
    this.#options = { ...DEFAULTS, ...options };
    this.initKey = openInitKey(options.home);
    this.#self = identityOf(this.#processes, process.pid) ?? { pid: process.pid, start: "" };
    this.#records = new Records(join(this.#folder, "sandboxes"), { noun: "sandbox", format: 1, self: this.#self });
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

  async mountDisk(disk: string, folder: string, sizeMb: number): Promise<void> {
    await mountDisk(disk, realpathSync(folder), sizeMb);
  }

  async unmountDisk(folder: string): Promise<void> {
    if (existsSync(folder)) await unmount(realpathSync(folder));
  }

  async removeSnapshot(id: string): Promise<void> {
    const { snapshots, pools } = await this.#open();
    const checkpoint = snapshots.memoryFolder(id);
    const layer = snapshots.highestLayerOf(id);
    // Those that wait would keep its files.
    const isRemoved = (spec: ContainerSpec) => spec.checkpoint === checkpoint || (layer !== null && spec.files.layers.at(-1) === layer);
    for (const pool of Object.values(pools)) await pool.forget(isRemoved);
    await snapshots.remove(id);
  }

  async exportSnapshot(id: string): Promise<ExportedSnapshot> {
    return exportSnapshot(id, await this.#site());
  }

  async importSnapshot(
    description: SnapshotDescription,
    open: (part: SnapshotPart) => Promise<Readable>,
    signal: AbortSignal,
  ): Promise<SandboxSnapshot> {
    return importSnapshot(description, open, signal, await this.#site());
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
      key: this.initKey,
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
      key: initKeyArgument(this.initKey),
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
    const { memoryMb, pids, cpuSeconds } = this.#limitsOf(spec);
    return {
      format: 1,
      id: spec.id,
      labels: spec.labels,
      createdAt: new Date().toISOString(),
      keeper: this.#self,
      container: null,
      address: null,
      program: null,
      limits: { memoryMb: memoryMb ?? null, processes: pids ?? null, cpuSeconds: cpuSeconds ?? null },
      isReady: false,
    };
  }

  #limitsOf(spec: SandboxSpec): Limits {
    const { defaults = {} } = this.#options;
    const mostProcesses = defaults.processes ?? DEFAULT_PROCESSES;
    const limits = {
      memoryMb: spec.memoryMb ?? defaults.memoryMb,
      cpus: spec.cpus ?? defaults.cpus,
      pids: Math.min(spec.processes ?? mostProcesses, mostProcesses),
      cpuSeconds: spec.cpuSeconds,
    };
    return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
  }

  async #start(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    let sandbox: OciSandbox | undefined;
    try {
      await this.#adoptFirst();
      const container = await containerFor(spec, this.#limitsOf(spec), await this.#source(), signal);
      sandbox = this.#newSandbox(spec, container);
      if (spec.egress !== undefined && spec.egress !== "none") await container.network.setEgress(spec.egress);
      await this.#run(sandbox, spec, signal);
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

  /** Starts the program and waits until it answers. */
  async #run(sandbox: OciSandbox, spec: SandboxSpec, signal: AbortSignal): Promise<void> {
    const listening = spec.listening ?? APPENDED;
    const { memory } = spec.snapshot === undefined ? { memory: null } : (await this.#open()).snapshots.get(spec.snapshot);
    if (memory !== null) {
      const lost = describeCut(memory.cut);
      if (lost !== null) writeFileSync(this.#logPath(spec.id), `${lost}\n`, { flag: "a", mode: 0o600 });
      return this.#continue(sandbox, spec, memory.program, listening, signal);
    }
    await makeWorkingDirectory(sandbox, spec);
    await addHosts(sandbox, spec);
    // A sandbox that only runs commands does not start the program of its image, which often is a shell that would end at once.
    if (listening.kind === "none" && spec.command.length === 0) return;
    const program = mainProgram(withAddress(spec, listening, sandbox.container.record.runtime), sandbox.container.record.files.config);
    if (program === null) throw startFailed(spec.id, "neither the image nor the specification names a program");
    // A snapshot has the folder already, with the changes of its program, also if it was taken on another machine.
    const folder = spec.folder === undefined ? null : await sandbox.addProgramFolder(spec.folder, signal);
    const workingDirectory = folder === null ? program.workingDirectory : posix.join(folder, spec.cwd ?? ".");
    const started = await startProgram(sandbox, spec, { ...program, workingDirectory });
    this.#records.write(spec.id, sandbox.setRecord({ program: started.id }));
    sandbox.follows(started);
    if (listening.kind !== "none") await untilReady(sandbox, spec, listening, signal);
  }

  /** The program of a restored sandbox runs already. */
  async #continue(
    sandbox: OciSandbox,
    spec: SandboxSpec,
    program: number | null,
    listening: Listening,
    signal: AbortSignal,
  ): Promise<void> {
    if (program === null) return sandbox.keep();
    const running = await sandbox.container.init.attach(program);
    this.#records.write(spec.id, sandbox.setRecord({ program }));
    sandbox.follows(running);
    if (listening.kind !== "none") await untilReady(sandbox, spec, listening, signal);
  }

  async #snapshot({ container, record }: OciSandbox, fidelity: SnapshotFidelity, signal: AbortSignal): Promise<SandboxSnapshot> {
    const { containers, layers, snapshots } = await this.#open();
    const { runtime, diskMb, shmMb = null, capabilities = "minimal", initPath } = container.record;
    const subject = {
      container,
      root: () => containers.roots.of(containers.current(container.record)),
      restack: () => containers.restack(container.record),
      runtime: await this.#runtime(runtime),
      program: record.program,
      diskMb,
      shmMb,
      capabilities,
      initPath,
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

  /** Finds the sandboxes of other server processes on this home, takes over those whose process has ended, and removes what else is left. */
  async #adoptAll(): Promise<void> {
    const { containers } = await this.#open();
    const ids = this.#records.ids();
    const used = new Set<string>();
    await Promise.all(
      ids.map(async (id) => {
        const record = this.#records.find(id);
        if (await this.#adoptOne(id, record, containers)) used.add(record?.container ?? "");
        else {
          const owned = record?.container == null ? null : containers.find(record.container);
          if (owned !== null) await containers.remove(owned);
          await this.#records.remove(id);
        }
      }),
    );
    // Sandboxes that another process has removed.
    for (const sandbox of this.#sandboxes.values())
      if (sandbox.hasExited && !sandbox.isKept && !ids.includes(sandbox.id)) this.#sandboxes.delete(sandbox.id);
    await this.#records.removeParts(this.#processes);
    await containers.collect(used);
  }

  /** False if the sandbox is to be removed. */
  async #adoptOne(id: string, record: SandboxRecord | null, containers: Containers): Promise<boolean> {
    if (this.#work.isStarting(id)) return true;
    const held = this.#sandboxes.get(id);
    if (held?.isKept || (held !== undefined && record === null)) return true;
    if (record === null) return false;
    const hasKeeper = record.keeper !== null && isRunning(this.#processes, record.keeper);
    if (!record.isReady || record.address === null) return hasKeeper;
    const sandbox = held ?? (await this.#openRunning(record, record.address, containers));
    if (sandbox === null || sandbox.hasExited) return hasKeeper;
    if (!hasKeeper) {
      if (!(await this.#takeOver(sandbox))) return false;
      this.#unseen.add(sandbox);
    }
    this.#sandboxes.set(id, sandbox);
    return true;
  }

  async #openRunning(record: SandboxRecord, address: SandboxAddress, containers: Containers): Promise<OciSandbox | null> {
    const owned = record.container === null ? null : containers.find(record.container);
    using limit = new TimedSignal(ADOPT_MS, this.#work.closing);
    const container = owned === null ? null : await containers.open(owned, limit.signal);
    return container === null ? null : this.#openSandbox(record, container, address);
  }

  /** False if its program has ended: nobody waits for the reason. */
  async #takeOver(sandbox: OciSandbox): Promise<boolean> {
    const { program } = sandbox.record;
    try {
      const { init } = sandbox.container;
      if (program === null) sandbox.keep();
      else {
        const listed = (await init.listProcesses()).find(({ id }) => id === program);
        if (listed?.ending !== null) throw new Error("the program has ended");
        sandbox.follows(await init.attach(program));
      }
    } catch {
      await sandbox.detach();
      return false;
    }
    this.#records.write(sandbox.id, sandbox.setRecord({ keeper: this.#self }));
    return true;
  }

  #logPath(id: string): string {
    return join(this.#records.folderOf(id), "log");
  }
}
