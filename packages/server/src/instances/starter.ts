import { isPlatformError, PlatformError } from "@aenv/contract";
import type { EnvironmentVersion } from "../hub/hub.ts";
import type { FairQueue } from "../slots/fair-queue.ts";
import type { Opening, Placement } from "../slots/slots.ts";
import type { Ledger } from "./ledger.ts";
import { type InstanceRow, moved, type Slot } from "./row.ts";
import { within } from "./within.ts";

export interface StarterOptions {
  readonly ledger: Ledger;
  readonly queue: FairQueue;
  readonly placement: Placement;
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

  begin(environment: EnvironmentVersion, row: InstanceRow, opening: Opening): void {
    const started = this.watch(this.#start(environment, row, opening)).finally(() => this.#starting.delete(row.id));
    this.#starting.set(row.id, started);
    // Whoever created it may not wait; a failure is in the row then.
    started.catch(() => {});
  }

  /** A slot, when it is the owner's turn. */
  place(environment: EnvironmentVersion, owner: string, opening: Opening): Promise<Slot> {
    const { queue, placement } = this.#options;
    const { signal } = this.#stop;
    return queue.run(owner, () => placement.place(environment, owner, opening, signal), signal);
  }

  /** The last step: from now on it is used. */
  async becomeRunning(id: string, slot: Slot, keeper: Partial<InstanceRow> = {}): Promise<InstanceRow> {
    const { ledger, placement } = this.#options;
    try {
      return await ledger.change(id, (row, now) =>
        // Its idle time begins now: until here nobody could use it.
        moved(row, ["Pending", "Creating"], "Running", "running", now, { slot, lastUsedAt: now.toISOString(), ...keeper }),
      );
    } catch (error) {
      // It was ended while it started: what has started late is ended again. Or the store is away, and may say that it runs.
      await placement.leave(slot, id);
      await ledger.fail(id, error);
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
    await within(Promise.allSettled(this.#underway), graceMs);
    this.#stop.abort(new PlatformError("server.draining", "the server was stopped while the instance started"));
    // Not even for a store that is away.
    this.#options.ledger.close();
    await Promise.allSettled(this.#underway);
  }

  async #start(environment: EnvironmentVersion, row: InstanceRow, opening: Opening): Promise<InstanceRow> {
    let slot: Slot;
    try {
      slot = await this.place(environment, row.owner, opening);
    } catch (error) {
      await this.#options.ledger.fail(row.id, error);
      throw error;
    }
    return this.becomeRunning(row.id, slot);
  }
}
