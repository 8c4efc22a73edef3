import type { Sandbox, SandboxAddress, SandboxExit } from "../engine.ts";
import { describeEnding, type Ending } from "./exit-reason.ts";
import { isRunning, type ProcessIdentity, type ProcessTable } from "./process-table.ts";
import type { SandboxFolder, SandboxRecord } from "./sandbox-folder.ts";
import { SandboxLog } from "./sandbox-log.ts";

/** A running program, started by us or by an earlier process of ours. */
export class ProcessSandbox implements Sandbox {
  readonly id: string;
  readonly address: SandboxAddress;
  readonly labels: Readonly<Record<string, string>>;
  readonly exited: Promise<SandboxExit>;
  readonly folder: SandboxFolder;
  record: SandboxRecord;
  readonly process: ProcessIdentity;
  readonly log: SandboxLog;
  /** Set where the system tells which process listens on a port. */
  connect?: NonNullable<Sandbox["connect"]>;
  #seen: readonly ProcessIdentity[] = [];
  #exit: SandboxExit | null = null;
  #resolveExit: (exit: SandboxExit) => void = () => undefined;
  #why: string | null = null;
  readonly #destroy: (sandbox: ProcessSandbox) => Promise<void>;
  #destroying: Promise<void> | undefined;

  constructor(
    folder: SandboxFolder,
    record: SandboxRecord,
    process: ProcessIdentity,
    logBytes: number,
    destroy: (sandbox: ProcessSandbox) => Promise<void>,
  ) {
    this.id = record.id;
    this.address = { kind: "unix", path: record.socket };
    this.labels = record.labels;
    this.folder = folder;
    this.record = record;
    this.process = process;
    this.log = new SandboxLog(folder.log, logBytes);
    this.#destroy = destroy;
    this.exited = new Promise((resolve) => {
      this.#resolveExit = resolve;
    });
  }

  get pid(): number {
    return this.process.pid;
  }

  get hasExited(): boolean {
    return this.#exit !== null;
  }

  /** Descendants of the program that were seen and still run, also if their own parent has ended since. */
  get seen(): readonly ProcessIdentity[] {
    return this.#seen;
  }

  /** Looks who has come of the program since the last time. */
  see(table: ProcessTable): void {
    const found = new Map<number, ProcessIdentity>();
    const queue = [this.process, ...this.#seen.filter((one) => isRunning(table, one))];
    for (let one = queue.pop(); one !== undefined; one = queue.pop()) {
      if (found.has(one.pid)) continue;
      found.set(one.pid, { pid: one.pid, start: one.start });
      queue.push(...table.childrenOf(one.pid));
    }
    found.delete(this.pid);
    this.#seen = [...found.values()];
  }

  /** It could not be moved into its control group, so other ways have to find its processes. */
  leaveGroup(): void {
    this.record = { ...this.record, group: null };
  }

  /** What is about to end the sandbox, if we do it ourselves: the system only tells the signal. */
  blame(why: string): void {
    this.#why ??= why;
  }

  noteExit(exit: Ending["exit"]): void {
    if (this.#exit !== null) return;
    const reason = this.#why ?? describeEnding({ exit, lines: this.log.tail(REASON_LINES), memoryMb: this.record.memoryMb });
    this.#exit = { at: new Date(), reason };
    this.#resolveExit(this.#exit);
  }

  async tail(lines: number): Promise<string[]> {
    return this.log.tail(lines);
  }

  follow(signal: AbortSignal): AsyncIterable<string> {
    return this.log.follow(signal, this.exited);
  }

  destroy(): Promise<void> {
    this.#destroying ??= this.#destroy(this).catch((error: unknown) => {
      this.#destroying = undefined;
      throw error;
    });
    return this.#destroying;
  }
}

const REASON_LINES = 40;
