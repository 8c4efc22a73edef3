import { appendFileSync } from "node:fs";
import type { Duplex } from "node:stream";
import type { CommandEnding } from "@aenv/contract";
import type {
  Sandbox,
  SandboxAddress,
  SandboxCommands,
  SandboxEgress,
  SandboxExit,
  SandboxFreezing,
  SandboxPorts,
  SandboxSnapshot,
  SandboxSnapshots,
  SnapshotFidelity,
} from "../engine/engine.ts";
import { once } from "../host/once.ts";
import type { ProcessIdentity } from "../host/process-table.ts";
import { SandboxLog } from "../host/sandbox-log.ts";
import { isInitError } from "../init/error.ts";
import { sendFolder } from "../init/folder.ts";
import type { RemoteProcess } from "../init/process.ts";
import { type LimitUse, measuredUse } from "../lifecycle/limit-watch.ts";
import { portClosed } from "../lifecycle/ports.ts";
import type { KnownLimits } from "../spec/limits.ts";
import { imageDefaults, variablesOf } from "../spec/program.ts";
import { type Container, INIT_PORT, initAddress } from "./container.ts";
import { describeEnding } from "./ending.ts";
import { nextState, type SandboxEvent, type SandboxState, STARTED } from "./sandbox-state.ts";

/** What a restarted server needs to know about a sandbox, besides its container. It has no variables: they may be secrets. */
export interface SandboxRecord {
  readonly format: 1;
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: string;
  /** The server process that stores its output and removes it when it has ended; null after that process has closed its engine. */
  readonly keeper: ProcessIdentity | null;
  /** The id of its container; null until it has one. */
  readonly container: string | null;
  readonly address: SandboxAddress | null;
  /** The number of the main program in the init; null if there is none, or not yet. */
  readonly program: number | null;
  readonly limits: KnownLimits;
  /** Whether it has answered and `create` has returned it. */
  readonly isReady: boolean;
}

export interface SandboxParts {
  readonly record: SandboxRecord;
  readonly container: Container;
  readonly address: SandboxAddress;
  readonly logPath: string;
  readonly logBytes: number;
  /** Removes the container; called when the sandbox has ended. */
  readonly release: () => Promise<void>;
  readonly snapshot: (sandbox: OciSandbox, fidelity: SnapshotFidelity, signal: AbortSignal) => Promise<SandboxSnapshot>;
  readonly destroy: (sandbox: OciSandbox) => Promise<void>;
}

/** More than Linux accepts for the start of a program. */
const MAX_VARIABLES_BYTES = 8 * 2 ** 20;
const REASON_LINES = 40;
/** Between two measurements of its use; measuring itself takes some. */
const QUIET_CPU_MS = { runc: 20, runsc: 100 } as const;

/** A container in which a program runs, created by this engine or adopted from an earlier one. */
export class OciSandbox implements Sandbox {
  readonly id: string;
  readonly address: SandboxAddress;
  readonly commands: SandboxCommands;
  readonly ports: SandboxPorts = { connect: (port, signal) => this.#connect(port, signal) };
  readonly egress: SandboxEgress = { set: (policy) => this.container.network.setEgress(policy) };
  readonly freezing: SandboxFreezing = {
    freeze: () => this.container.group.freeze(),
    thaw: () => this.container.group.thaw(),
    cpuMs: async () => (await this.container.group.usage()).cpuMs ?? 0,
  };
  readonly snapshots: SandboxSnapshots;
  readonly labels: Readonly<Record<string, string>>;
  readonly pid: number;
  readonly log: SandboxLog;
  readonly container: Container;
  record: SandboxRecord;
  readonly #logPath: string;
  readonly #logBytes: number;
  readonly #snapshot: SandboxParts["snapshot"];
  #lastSnapshot: Promise<unknown> = Promise.resolve();
  #logged = 0;
  #measuredCpuMs = 0;
  #quietMeasurements = 0;
  #state: SandboxState = STARTED;
  readonly #exiting = Promise.withResolvers<SandboxExit>();
  readonly exited = this.#exiting.promise;
  /** Removes the container. The log stays until `destroy`. */
  readonly release: () => Promise<void>;
  readonly destroy: () => Promise<void>;

  constructor({ record, container, address, logPath, logBytes, release, snapshot, destroy }: SandboxParts) {
    this.id = record.id;
    this.record = record;
    this.container = container;
    this.labels = record.labels;
    this.address = address;
    this.commands = { address: initAddress(container.network), defaults: imageDefaults(container.record.files.config) };
    this.snapshots = {
      fidelities: container.record.runtime === "runsc" ? ["files", "memory"] : ["files"],
      take: (fidelity, signal) => this.#takeSnapshot(fidelity, signal),
    };
    this.pid = container.record.process.pid;
    this.log = new SandboxLog(logPath, logBytes);
    this.#logPath = logPath;
    this.#logBytes = logBytes;
    this.release = once(release);
    this.#snapshot = snapshot;
    this.destroy = once(() => destroy(this));
    // Followers watch it.
    appendFileSync(logPath, "", { mode: 0o600 });
    void container.init.closed.then(() => this.#change({ kind: "connection closed" }));
  }

  get hasExited(): boolean {
    return this.#state.kind === "exited";
  }

  /** Writes the output of the main program to the log, and ends the sandbox with it. */
  follows(program: RemoteProcess): void {
    for (const stream of [program.stdout, program.stderr]) {
      stream.on("data", (data: Buffer) => this.#print(data));
      stream.on("error", () => undefined); // reported by `exited`
    }
    this.keep();
    program.exited.then(
      (ending) => this.#change({ kind: "program ended" }, ending),
      (error: unknown) => {
        // Another server process has taken over.
        if (isInitError(error, "replaced")) this.#change({ kind: "taken over" });
      },
    );
  }

  /** Stores its output and removes it when it has ended; otherwise another server process does. */
  get isKept(): boolean {
    return this.#state.isKept;
  }

  /** Without a main program, there is no output, and the sandbox ends with its init. */
  keep(): void {
    this.#change({ kind: "kept" });
  }

  /** Changes the record; the caller stores it. */
  setRecord(change: Partial<SandboxRecord>): SandboxRecord {
    this.record = { ...this.record, ...change };
    return this.record;
  }

  /** Closes the connection to the init; the sandbox goes on, and what it has printed so far is in the log. */
  async leave(): Promise<void> {
    this.#change({ kind: "left" });
    await this.container.init.end();
  }

  /** The same at once, for a sandbox that is removed. */
  async detach(): Promise<void> {
    this.#change({ kind: "left" });
    await this.container.init.close();
  }

  /** The process that serves its files has ended: what runs in it cannot go on. */
  endWithoutFiles(): void {
    this.#change({ kind: "files lost" });
    void this.container.init.close();
  }

  /** Known before the sandbox ends. The first one counts. */
  setExitReason(reason: string): void {
    this.#change({ kind: "reason known", reason });
  }

  markExited(reason: string): void {
    this.#change({ kind: "exited", reason, at: new Date() });
  }

  async tail(lines: number): Promise<string[]> {
    return this.log.tail(lines);
  }

  follow(signal: AbortSignal): AsyncIterable<string> {
    return this.log.follow(signal, this.exited);
  }

  async #connect(port: number, signal: AbortSignal): Promise<Duplex> {
    if (port === INIT_PORT) throw portClosed(this.id, port);
    signal.throwIfAborted();
    const connecting = this.container.init.connect(port);
    const abandon = () => void connecting.then((stream) => stream.destroy()).catch(() => undefined);
    signal.addEventListener("abort", abandon);
    try {
      const stream = await connecting;
      signal.throwIfAborted();
      return stream;
    } catch (error) {
      signal.throwIfAborted();
      if (isInitError(error, "port_closed") || this.hasExited) throw portClosed(this.id, port, error);
      throw error;
    } finally {
      signal.removeEventListener("abort", abandon);
    }
  }

  addFolder(folder: string, signal: AbortSignal): Promise<string> {
    return sendFolder(this.container.init, folder, signal);
  }

  /** The same, at a path that is that of its content on every machine. */
  addProgramFolder(folder: string, signal: AbortSignal): Promise<string> {
    return sendFolder(this.container.init, folder, signal, { isNamedByContent: true });
  }

  get knownLimits(): KnownLimits {
    const { storage, diskMb } = this.container.record;
    return { ...this.record.limits, diskMb: storage.kind === "folder" ? (diskMb ?? null) : storage.sizeMb };
  }

  /** What it has used; null if it has hardly run since the last time, so that an idle sandbox is not asked again and again. */
  async limitUse(): Promise<LimitUse | null> {
    const { group, init, record } = this.container;
    const usage = await group.usage();
    const cpuMs = usage.cpuMs ?? 0;
    const isQuiet = cpuMs - this.#measuredCpuMs < QUIET_CPU_MS[record.runtime];
    this.#measuredCpuMs = cpuMs;
    this.#quietMeasurements = isQuiet ? this.#quietMeasurements + 1 : 0;
    // One more after it has become quiet: it may have reached a limit after the last one.
    if (this.#quietMeasurements > 1 || (await group.isFrozen())) return null;
    const { outOfMemoryKills, processLimitHits } = usage;
    const unknown = { diskFreeKb: null, openFiles: null, openFilesLimit: null };
    // The control group counts what the init cannot see.
    return { ...(await measuredUse(init).catch(() => unknown)), outOfMemoryKills, processLimitHits };
  }

  async programVariables(): Promise<Readonly<Record<string, string>>> {
    const { init } = this.container;
    const main = (await init.listProcesses()).find(({ id }) => id === this.record.program);
    if (main === undefined) return {};
    const block = await init.files.read({ path: `/proc/${main.pid}/environ`, length: MAX_VARIABLES_BYTES });
    const pairs = block
      .toString("utf8")
      .split("\0")
      .filter((one) => one.includes("="));
    return variablesOf(pairs);
  }

  /** Snapshots are taken one at a time: each freezes and thaws the sandbox, and may exchange its root. */
  #takeSnapshot(fidelity: SnapshotFidelity, signal: AbortSignal): Promise<SandboxSnapshot> {
    const taking = this.#lastSnapshot.then(() => this.#snapshot(this, fidelity, signal));
    this.#lastSnapshot = taking.catch(() => undefined);
    return taking;
  }

  #change(event: SandboxEvent, ending: CommandEnding | null = null): void {
    const before = this.#state.kind;
    this.#state = nextState(this.#state, event);
    if (this.#state.kind === before) return;
    if (this.#state.kind === "ending") void this.#end(ending);
    if (this.#state.kind === "exited") this.#exiting.resolve(this.#state.exit);
  }

  #print(data: Buffer): void {
    try {
      appendFileSync(this.#logPath, data, { mode: 0o600 });
    } catch {
      // The disk is full, or the sandbox is being removed: the program goes on without its log.
    }
    this.#logged += data.length;
    if (this.#logged < this.#logBytes / 4) return;
    this.#logged = 0;
    this.log.trim();
  }

  /** Called at the end of the main program, or of the whole sandbox. */
  async #end(ending: CommandEnding | null): Promise<void> {
    if (!this.isKept) return this.markExited("the sandbox has ended; another server process keeps the reason");
    const usage = await this.container.group.usage();
    // Children that outlive the program are ended too.
    await this.container.group.kill().catch(() => undefined);
    const lines = this.log.tail(REASON_LINES);
    const hasLostFiles = this.#state.kind === "ending" && this.#state.hasLostFiles;
    this.markExited(describeEnding({ ending, hasLostFiles, usage, lines, limits: this.record.limits }));
    // What fails now is done by `destroy`.
    await this.release().catch(() => undefined);
  }
}
