import { isPlatformError, PlatformError } from "@aenv/contract";
import type { EnvironmentVersion } from "../hub/hub.ts";
import type { InitialState } from "../slots/initial-state.ts";
import type { MemoryGate } from "../slots/memory-gate.ts";
import type { Scheduler } from "../slots/scheduler.ts";
import type { Slot } from "../slots/slot.ts";
import type { Slots } from "../slots/slots.ts";
import type { InstanceTable } from "./instance-table.ts";
import { type InstanceRow, isSettled, withEvent, withStatus } from "./row.ts";
import { waitAtMost } from "./wait-at-most.ts";

export interface StarterOptions {
  readonly table: InstanceTable;
  readonly scheduler: Scheduler;
  readonly slots: Slots;
  readonly memoryGate?: MemoryGate;
}

export interface BeginOptions {
  /** Values that must not be in the reason of a failure, such as secrets. */
  readonly hidden?: readonly string[];
  /** Completes what the instance starts with, from a stored snapshot that stays until the instance has a slot. */
  /** `children` for the child of another instance, which waits for neither a place nor memory: its parent holds both. */
  readonly kind?: "creations" | "children";
  /** Aborts the start. */
  readonly cancel?: AbortSignal;
  readonly from?: (initial: InitialState, occupy: (full: InitialState) => Promise<Slot>) => Promise<Slot>;
}

/** Starts instances: gives the row a slot and moves it to `Running`. */
export class Starter {
  readonly #options: StarterOptions;
  readonly #starting = new Map<string, Promise<InstanceRow>>();
  readonly #inProgress = new Set<Promise<unknown>>();
  readonly #stop = new AbortController();

  constructor(options: StarterOptions) {
    this.#options = options;
  }

  /** The result of a start in progress on this server. */
  find(id: string): Promise<InstanceRow> | null {
    return this.#starting.get(id) ?? null;
  }

  begin(environment: EnvironmentVersion, row: InstanceRow, initial: InitialState, options: BeginOptions = {}): void {
    const started = this.track(this.#start(environment, row, initial, options)).finally(() => this.#starting.delete(row.id));
    this.#starting.set(row.id, started);
    // The creator may not wait; a failure is in the row.
    started.catch(() => {});
  }

  occupy(environment: EnvironmentVersion, owner: string, initial: InitialState, options: BeginOptions = {}): Promise<Slot> {
    const { kind, cancel } = options;
    return this.admit(initial.id, owner, (signal) => this.#options.slots.occupy(environment, owner, initial, signal), cancel, kind);
  }

  /** Occupies a slot when the scheduler lets the owner and the machine has memory. */
  admit(
    id: string,
    owner: string,
    occupy: (signal: AbortSignal) => Promise<Slot>,
    cancel?: AbortSignal,
    kind: BeginOptions["kind"] = "creations",
  ): Promise<Slot> {
    const { scheduler, memoryGate } = this.#options;
    const signal = cancel === undefined ? this.#stop.signal : AbortSignal.any([this.#stop.signal, cancel]);
    const start = async () => {
      if (kind === "creations") await memoryGate?.pass((why) => this.note(id, why), signal);
      return occupy(signal);
    };
    return scheduler.run({ kind, owner }, start, signal);
  }

  /** An event of a start, for the instance's owner. The start does not depend on it. */
  note(id: string, what: string): void {
    this.#options.table.change(id, (row, now) => (isSettled(row) ? null : withEvent(row, what, now))).catch(() => {});
  }

  /** The last step of a start. */
  async becomeRunning(id: string, slot: Slot, change: Partial<InstanceRow> = {}): Promise<InstanceRow> {
    const { table, slots } = this.#options;
    try {
      return await table.change(id, (row, now) =>
        // The idle time begins now: before, it could not be used.
        withStatus(row, ["Pending", "Creating"], "Running", "running", now, { slot, lastUsedAt: now.toISOString(), ...change }),
      );
    } catch (error) {
      // It was ended during the start, so its slot is released again. Or the store is unavailable and may have stored `Running`.
      await slots.release(slot, id);
      await table.fail(id, error);
      if (!isPlatformError(error, "instance.not_found")) throw error;
      throw new PlatformError("instance.gone", `instance '${id}' was ended while it started`);
    }
  }

  /** Registers work that `close` waits for. */
  track<T>(work: Promise<T>): Promise<T> {
    const done = work.finally(() => this.#inProgress.delete(done));
    this.#inProgress.add(done);
    return done;
  }

  /** Waits up to `graceMs` for starts in progress, then aborts them. */
  async close(graceMs: number): Promise<void> {
    await waitAtMost(Promise.allSettled(this.#inProgress), graceMs);
    this.#stop.abort(new PlatformError("server.draining", "the server was stopped while the instance started"));
    // Writes are not retried any more, even if the store is unavailable.
    this.#options.table.close();
    await Promise.allSettled(this.#inProgress);
  }

  /** A snapshot that is being imported does not delay the end of the server. `occupy` fails once it is stopped. */
  #unlessStopped<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#stop;
    return new Promise((resolve, reject) => {
      const stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop);
      work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
    });
  }

  async #start(environment: EnvironmentVersion, row: InstanceRow, initial: InitialState, options: BeginOptions): Promise<InstanceRow> {
    const { hidden = [], from } = options;
    const occupy = (full: InitialState) => this.occupy(environment, row.owner, full, options);
    let slot: Slot;
    try {
      slot = await (from === undefined ? occupy(initial) : this.#unlessStopped(from(initial, occupy)));
    } catch (cause) {
      const error = hideIn(cause, hidden);
      await this.#options.table.fail(row.id, error);
      throw error;
    }
    return this.becomeRunning(row.id, slot);
  }
}

/** The environment's own code may fail with a message that contains a secret. */
export function hideIn(error: unknown, hidden: readonly string[]): unknown {
  if (!isPlatformError(error) || !hidden.some((value) => error.message.includes(value))) return error;
  const message = hidden.reduce((text, value) => text.replaceAll(value, "***"), error.message);
  return new PlatformError(error.code, message);
}
