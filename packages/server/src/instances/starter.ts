import { isPlatformError, PlatformError } from "@aenv/contract";
import type { EnvironmentVersion } from "../hub/hub.ts";
import type { FairQueue } from "../slots/fair-queue.ts";
import type { InitialState, Slots } from "../slots/slots.ts";
import type { InstanceTable } from "./instance-table.ts";
import { type InstanceRow, moved, type Slot } from "./row.ts";
import { waitAtMost } from "./wait-at-most.ts";

export interface StarterOptions {
  readonly table: InstanceTable;
  readonly queue: FairQueue;
  readonly slots: Slots;
}

/** Brings instances from their row to a slot. */
export class Starter {
  readonly #options: StarterOptions;
  readonly #starting = new Map<string, Promise<InstanceRow>>();
  readonly #underway = new Set<Promise<unknown>>();
  readonly #stop = new AbortController();

  constructor(options: StarterOptions) {
    this.#options = options;
  }

  /** A start in progress here, for those who wait for it. */
  find(id: string): Promise<InstanceRow> | null {
    return this.#starting.get(id) ?? null;
  }

  begin(environment: EnvironmentVersion, row: InstanceRow, opening: InitialState): void {
    const started = this.watch(this.#start(environment, row, opening)).finally(() => this.#starting.delete(row.id));
    this.#starting.set(row.id, started);
    // Whoever created it may not wait; a failure is in the row then.
    started.catch(() => {});
  }

  /** A slot, when it is the owner's turn. */
  place(environment: EnvironmentVersion, owner: string, opening: InitialState): Promise<Slot> {
    const { queue, slots } = this.#options;
    const { signal } = this.#stop;
    return queue.run(owner, () => slots.place(environment, owner, opening, signal), signal);
  }

  /** The last step: from now on it is used. */
  async becomeRunning(id: string, slot: Slot, change: Partial<InstanceRow> = {}): Promise<InstanceRow> {
    const { table, slots } = this.#options;
    try {
      return await table.change(id, (row, now) =>
        // Its idle time begins now: until here nobody could use it.
        moved(row, ["Pending", "Creating"], "Running", "running", now, { slot, lastUsedAt: now.toISOString(), ...change }),
      );
    } catch (error) {
      // It was ended while it started: what has started late is ended again. Or the store is away, and may say that it runs.
      await slots.leave(slot, id);
      await table.fail(id, error);
      if (!isPlatformError(error, "instance.not_found")) throw error;
      throw new PlatformError("instance.gone", `instance '${id}' was ended while it started`);
    }
  }

  /** Work that is waited for before the server goes. */
  watch<T>(work: Promise<T>): Promise<T> {
    const done = work.finally(() => this.#underway.delete(done));
    this.#underway.add(done);
    return done;
  }

  /** Waits so long for what is underway, and then gives it up. */
  async close(graceMs: number): Promise<void> {
    await waitAtMost(Promise.allSettled(this.#underway), graceMs);
    this.#stop.abort(new PlatformError("server.draining", "the server was stopped while the instance started"));
    // Not even for a store that is away.
    this.#options.table.close();
    await Promise.allSettled(this.#underway);
  }

  async #start(environment: EnvironmentVersion, row: InstanceRow, opening: InitialState): Promise<InstanceRow> {
    let slot: Slot;
    try {
      slot = await this.place(environment, row.owner, opening);
    } catch (error) {
      await this.#options.table.fail(row.id, error);
      throw error;
    }
    return this.becomeRunning(row.id, slot);
  }
}
