import { randomBytes } from "node:crypto";
import type { Outcome, RolloutResult } from "@aenv/contract";
import type { Collection } from "../stores/collection.ts";
import type { ListOptions, Versioned } from "../stores/store.ts";
import { unplayedResult } from "./result.ts";
import type { RolloutLease, RolloutRow } from "./row.ts";

export interface RolloutTableOptions {
  readonly rows: Collection<RolloutRow>;
  readonly results: Collection<RolloutResult>;
  readonly keepMs: number;
  /** Most bytes of all results together; the oldest are removed first. */
  readonly maxBytes: number;
  readonly now: () => Date;
  /** Removes what the store's files still hold of replaced rows; false if it has to be tried again. */
  readonly scrub?: (() => Promise<boolean>) | undefined;
}

type RowTest = (row: RolloutRow) => boolean;

/** The rows of rollouts and their results. A row changes by compare-and-set; only the holder of its lease can write its result. */
export class RolloutTable {
  readonly #options: RolloutTableOptions;
  readonly #onEnd: (key: string, outcome: Outcome) => void;
  /** Rollouts have ended, here or before the last stop, whose keys the store's files may still hold. */
  #mustScrub = true;

  constructor(options: RolloutTableOptions, onEnd: (key: string, outcome: Outcome) => void) {
    this.#options = options;
    this.#onEnd = onEnd;
  }

  async find(key: string): Promise<RolloutRow | null> {
    return (await this.#options.rows.find(key))?.value ?? null;
  }

  /** False if the key exists. */
  async insert(key: string, row: RolloutRow): Promise<boolean> {
    return (await this.#options.rows.insert(key, row)) === "inserted";
  }

  list(options: ListOptions): Promise<Versioned<RolloutRow>[]> {
    return this.#options.rows.list(options);
  }

  running(): AsyncIterable<Versioned<RolloutRow>> {
    return this.#options.rows.each({ index: "state", value: "running" });
  }

  countUnfinished(owner: string): Promise<number> {
    return this.#options.rows.count("unfinished", owner);
  }

  /** Null while the rollout is not done. */
  async resultOf({ done }: RolloutRow): Promise<RolloutResult | null> {
    return done === null ? null : ((await this.#options.results.find(done.resultKey))?.value ?? null);
  }

  /** Takes the lease of a queued rollout. Null if it is not queued. */
  take(key: string, lease: RolloutLease): Promise<RolloutRow | null> {
    return this.#options.rows.update(key, (row) => (row.state === "queued" ? { ...row, state: "running", lease } : null));
  }

  /** False if another server has the lease. */
  async beginAttempt(key: string, lease: RolloutLease, attempt: number): Promise<boolean> {
    return (await this.#options.rows.update(key, (row) => (holds(row, lease) ? { ...row, attempt } : null))) !== null;
  }

  /** Makes a rollout that was not finished available again. */
  async giveBack(key: string, lease: RolloutLease): Promise<void> {
    await this.#options.rows.update(key, (row) => (holds(row, lease) ? { ...row, state: "queued", lease: null } : null));
  }

  /** Makes a rollout that was lost available again, as a new attempt. False if its lease has changed. */
  async queueAgain(key: string, lost: RolloutLease): Promise<boolean> {
    const queued = await this.#options.rows.update(key, (row) =>
      holds(row, lost) ? { ...row, state: "queued", lease: null, attempt: row.attempt + 1, losses: row.losses + 1 } : null,
    );
    return queued !== null;
  }

  /** Writes the result first, so that a rollout that is done has one. Does nothing if the row may not end. */
  async end(key: string, result: RolloutResult, mayEnd: RowTest): Promise<void> {
    const { rows, results, now } = this.#options;
    const resultKey = `${key}#${randomBytes(8).toString("hex")}`;
    const bytes = Buffer.byteLength(JSON.stringify(result));
    await results.insert(resultKey, result);
    const done = { at: now().toISOString(), resultKey, bytes };
    const ended = await rows
      .update(key, (row) => (mayEnd(row) ? { ...row, state: "done", work: null, lease: null, attempt: result.attempt, done } : null))
      .catch(async (error: unknown) => {
        await results.remove(resultKey).catch(() => {});
        throw error;
      });
    if (ended === null) await results.remove(resultKey);
    else {
      this.#mustScrub = true;
      this.#onEnd(key, result.outcome);
    }
  }

  /** Removes the keys of rollouts that are done from the store's files. Not at the end of each: it waits for the disk. */
  async scrub(): Promise<void> {
    if (!this.#mustScrub) return;
    this.#mustScrub = false;
    let isDone = false;
    try {
      isDone = (await this.#options.scrub?.()) !== false;
    } finally {
      if (!isDone) this.#mustScrub = true;
    }
  }

  /** Ends a rollout that has no trajectory. */
  async endUnplayed(key: string, outcome: Outcome, mayEnd: RowTest): Promise<void> {
    const row = await this.find(key);
    if (row === null || row.work === null || !mayEnd(row)) return;
    await this.end(key, unplayedResult(row, row.work, outcome, this.#options.now()), mayEnd);
  }

  /** Removes results that are too old, and the oldest while there are too many bytes. */
  async sweep(): Promise<void> {
    const { rows, keepMs, maxBytes, now } = this.#options;
    const kept: { readonly key: string; readonly at: string; readonly bytes: number }[] = [];
    let bytes = 0;
    for await (const row of rows.each({ index: "state", value: "done" })) {
      const { done } = row.value;
      if (done === null) continue;
      if (now().getTime() - Date.parse(done.at) > keepMs) await this.#remove(row);
      else {
        kept.push({ key: row.key, at: done.at, bytes: done.bytes });
        bytes += done.bytes;
      }
    }
    kept.sort((one, other) => one.at.localeCompare(other.at));
    for (const { key, bytes: own } of kept) {
      if (bytes <= maxBytes) return;
      const row = await rows.find(key);
      if (row !== null) await this.#remove(row);
      bytes -= own;
    }
  }

  async #remove({ key, rev, value: { done } }: Versioned<RolloutRow>): Promise<void> {
    if ((await this.#options.rows.remove(key, rev)) && done !== null) await this.#options.results.remove(done.resultKey);
  }
}

/** A row has a lease only while it is played. */
export function holds(row: RolloutRow, lease: RolloutLease): boolean {
  return row.lease?.key === lease.key;
}
