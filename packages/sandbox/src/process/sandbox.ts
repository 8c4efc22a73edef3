import type { Sandbox, SandboxAddress, SandboxCommands, SandboxExit, SandboxFreezing, SandboxPorts } from "../engine/engine.ts";
import { cpuMsOf, setFrozen } from "../host/control-groups.ts";
import { describeExit, type ProcessEnd } from "../host/exit-reason.ts";
import { once } from "../host/once.ts";
import { isRunning, type ProcessIdentity, type ProcessTable } from "../host/process-table.ts";
import { SandboxLog } from "../host/sandbox-log.ts";
import type { SandboxFolder, SandboxRecord } from "./sandbox-folder.ts";

/** A running program, started by this process or adopted from an earlier one. */
export class ProcessSandbox implements Sandbox {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly exited: Promise<SandboxExit>;
  readonly folder: SandboxFolder;
  record: SandboxRecord;
  readonly process: ProcessIdentity;
  readonly log: SandboxLog;
  /** Set where the system reports which process listens on a port. */
  ports?: SandboxPorts;
  commands?: SandboxCommands;
  /** Set where the system reports the variables of a process. */
  programVariables?: NonNullable<Sandbox["programVariables"]>;
  /** Only for sandboxes in a control group. */
  freezing?: SandboxFreezing;
  #descendants: readonly ProcessIdentity[] = [];
  #exit: SandboxExit | null = null;
  #resolveExit: (exit: SandboxExit) => void = () => undefined;
  #exitReason: string | null = null;
  readonly destroy: () => Promise<void>;

  constructor(
    folder: SandboxFolder,
    record: SandboxRecord,
    process: ProcessIdentity,
    logBytes: number,
    destroy: (sandbox: ProcessSandbox) => Promise<void>,
  ) {
    this.id = record.id;
    const { group } = record;
    if (group !== null)
      this.freezing = { freeze: () => setFrozen(group, true), thaw: () => setFrozen(group, false), cpuMs: () => cpuMsOf(group) };
    this.labels = record.labels;
    this.folder = folder;
    this.record = record;
    this.process = process;
    this.log = new SandboxLog(folder.log, logBytes);
    this.destroy = once(() => destroy(this));
    this.exited = new Promise((resolve) => {
      this.#resolveExit = resolve;
    });
  }

  get address(): SandboxAddress {
    const { socket, port, host = "127.0.0.1" } = this.record;
    return port === undefined ? { kind: "unix", path: socket } : { kind: "tcp", host, port };
  }

  get pid(): number {
    return this.process.pid;
  }

  get hasExited(): boolean {
    return this.#exit !== null;
  }

  /** Descendants of the program that were found and still run, also if their own parent has ended since. */
  get descendants(): readonly ProcessIdentity[] {
    return this.#descendants;
  }

  updateDescendants(table: ProcessTable): void {
    const found = new Map<number, ProcessIdentity>();
    const queue = [this.process, ...this.#descendants.filter((one) => isRunning(table, one))];
    for (let one = queue.pop(); one !== undefined; one = queue.pop()) {
      if (found.has(one.pid)) continue;
      found.set(one.pid, { pid: one.pid, start: one.start });
      queue.push(...table.childrenOf(one.pid));
    }
    found.delete(this.pid);
    this.#descendants = [...found.values()];
  }

  /** Called when the program could not be moved into its control group. */
  clearGroup(): void {
    this.record = { ...this.record, group: null };
    delete this.freezing;
  }

  /** The reason to report when the engine itself ends the sandbox: the system reports only the signal. The first one counts. */
  setExitReason(reason: string): void {
    this.#exitReason ??= reason;
  }

  markExited(exit: ProcessEnd["exit"]): void {
    if (this.#exit !== null) return;
    const reason = this.#exitReason ?? describeExit({ exit, lines: this.log.tail(REASON_LINES), memoryMb: this.record.memoryMb });
    this.#exit = { at: new Date(), reason };
    this.#resolveExit(this.#exit);
  }

  async tail(lines: number): Promise<string[]> {
    return this.log.tail(lines);
  }

  follow(signal: AbortSignal): AsyncIterable<string> {
    return this.log.follow(signal, this.exited);
  }

  /** Its programs see the files of this machine. */
  addFolder(folder: string): Promise<string> {
    return Promise.resolve(folder);
  }
}

const REASON_LINES = 40;
