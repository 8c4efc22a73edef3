import { randomBytes } from "node:crypto";
import { type Outcome, type RolloutRequest, type RolloutResult, rolloutRequest } from "@aenv/contract";
import type { Collection, ListOptions, Versioned } from "@aenv/server/trainer-services";
import { Breaks } from "./breaks.ts";
import { evictions, type KeptResult, type ResultLimits } from "./evictions.ts";
import { unplayedResult } from "./result.ts";
import type { RolloutLease, RolloutRow, RolloutWork } from "./row.ts";
import { sizeClasses, sizeIndex } from "./sizes.ts";
import { MAX_RESULT_BYTES, type OpenResult, type StoredResults, textsOf } from "./stored-results.ts";

export interface RolloutTableOptions extends ResultLimits {
  readonly rows: Collection<RolloutRow>;
  readonly requests: Collection<RolloutRequest>;
  readonly results: StoredResults;
  readonly keepMs: number;
  readonly now: () => Date;
  /** Removes what the store's files still hold of replaced rows; false if it has to be tried again. */
  readonly scrub?: (() => Promise<boolean>) | undefined;
}

type RowTest = (row: RolloutRow) => boolean;

/** A sweep is due when so much of a limit of bytes was written since the last one. */
const SWEPT_PART = 1 / 8;

/** The rows of rollouts and their results. A row changes by compare-and-set; only the holder of its lease can write its result. */
export class RolloutTable {
  readonly #options: RolloutTableOptions;
  readonly #onEnd: (key: string, outcome: Outcome) => void;
  /** Rollouts have ended, here or before the last stop, whose keys the store's files may still hold. */
  #mustScrub = true;
  /** Bytes of results that were written here since the last sweep. */
  #unswept = 0;

  constructor(options: RolloutTableOptions, onEnd: (key: string, outcome: Outcome) => void) {
    this.#options = options;
    this.#onEnd = onEnd;
  }

  async find(key: string): Promise<RolloutRow | null> {
    return (await this.#options.rows.find(key))?.value ?? null;
  }

  /** False if the key exists. The row is first, because it names the request: a crash in between leaves no request without a row. */
  async insert(key: string, row: RolloutRow, request: RolloutRequest): Promise<boolean> {
    const { rows, requests } = this.#options;
    if ((await rows.insert(key, row)) !== "inserted") return false;
    const { requestKey = null } = row;
    if (requestKey === null) return true;
    try {
      await requests.insert(requestKey, request);
    } catch (error) {
      await rows.remove(key).catch(() => {});
      throw error;
    }
    return true;
  }

  /** Stores the request again of a queued rollout, in case that the server which accepted it was lost before it had stored it. */
  async restoreRequest(key: string, { requestKey = null }: RolloutRow, request: RolloutRequest): Promise<void> {
    if (requestKey === null || (await this.#options.requests.insert(requestKey, request)) !== "inserted") return;
    // It may have ended meanwhile, and then its request was removed before.
    const now = await this.find(key);
    if (now?.requestKey !== requestKey || now.work === null) await this.#options.requests.remove(requestKey);
  }

  /** What is played: the row's work with its request. Null if the rollout is done, or has no request (yet). */
  async workOf({ work, requestKey = null }: RolloutRow): Promise<RolloutWork | null> {
    if (work === null) return null;
    if (work.request !== null) return { ...work, request: work.request };
    const request = requestKey === null ? null : await this.#options.requests.find(requestKey);
    return request === null ? null : { ...work, request: request.value };
  }

  list(options: ListOptions): Promise<Versioned<RolloutRow>[]> {
    return this.#options.rows.list(options);
  }

  running(): AsyncIterable<Versioned<RolloutRow>> {
    return this.#options.rows.each({ index: "state", value: "running" });
  }

  /** How many rollouts of an owner are not done, and the sum of their requests; see `sizeClassOf`. */
  async unfinishedOf(owner: string): Promise<{ readonly count: number; readonly bytes: number }> {
    const { rows } = this.#options;
    const ofClass = async (size: number) => size * (await rows.count("unfinishedSize", sizeIndex(owner, size)));
    const [count, ...bytes] = await Promise.all([rows.count("unfinished", owner), ...sizeClasses.map(ofClass)]);
    return { count, bytes: bytes.reduce((sum, one) => sum + one, 0) };
  }

  /** Null while the rollout is not done. */
  async resultOf({ done }: RolloutRow): Promise<OpenResult | null> {
    return done === null ? null : this.#options.results.open(done.resultKey);
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
    const texts = textsOf(result);
    if (texts === null) {
      const message = `its result would be larger than ${MAX_RESULT_BYTES} bytes; limit its turns, or what a tool or an answer may return`;
      return this.endUnplayed(key, { kind: "unscored", cause: "agent", stage: "play", retryable: false, message }, mayEnd);
    }
    const resultKey = `${key}#${randomBytes(8).toString("hex")}`;
    const done = { at: now().toISOString(), resultKey, ...(await results.insert(resultKey, texts)) };
    const ended = await rows
      .update(key, (row) => (mayEnd(row) ? { ...row, state: "done", work: null, lease: null, attempt: result.attempt, done } : null))
      .catch(async (error: unknown) => {
        await results.remove(resultKey, done).catch(() => {});
        throw error;
      });
    if (ended === null) return results.remove(resultKey, done);
    this.#mustScrub = true;
    this.#unswept += done.bytes;
    this.#onEnd(key, result.outcome);
    // If it fails, `scrub` removes it: the row still names it.
    await this.#removeRequest(key, ended).catch(() => {});
  }

  /** Removes the keys of rollouts that are done from the store and its files. Not at the end of each: it waits for the disk. */
  async scrub(): Promise<void> {
    if (!this.#mustScrub) return;
    this.#mustScrub = false;
    let isDone = false;
    try {
      await this.#removeLeftRequests();
      isDone = (await this.#options.scrub?.()) !== false;
    } finally {
      if (!isDone) this.#mustScrub = true;
    }
  }

  /** Ends a rollout that has no trajectory. */
  async endUnplayed(key: string, outcome: Outcome, mayEnd: RowTest): Promise<void> {
    const row = await this.find(key);
    if (row === null || row.work === null || !mayEnd(row)) return;
    const { id, work } = row;
    const complete = (await this.workOf(row)) ?? { ...work, request: rolloutRequest.parse({ id, environment: work.environment }) };
    await this.end(key, unplayedResult(row, complete, outcome, this.#options.now()), mayEnd);
  }

  /** So many results were written here that the limits of bytes may be exceeded before the next regular sweep. */
  get isSweepDue(): boolean {
    const { maxBytes, maxBytesPerOwner } = this.#options;
    return this.#unswept > Math.min(maxBytes, maxBytesPerOwner) * SWEPT_PART;
  }

  /** Removes results that are too old, and those for which there is no space; see `evictions`. */
  async sweep(): Promise<void> {
    const { rows, keepMs, now } = this.#options;
    this.#unswept = 0;
    await this.#removeLeftRequests();
    const kept: KeptResult[] = [];
    const breaks = new Breaks();
    for await (const row of rows.each({ index: "state", value: "done" })) {
      await breaks.take();
      const { done, owner } = row.value;
      if (done === null) continue;
      if (now().getTime() - Date.parse(done.at) > keepMs) await this.#remove(row);
      else kept.push({ key: row.key, owner, at: done.at, bytes: done.bytes });
    }
    for (const { key } of evictions(kept, this.#options)) {
      await breaks.take();
      const row = await rows.find(key);
      if (row !== null) await this.#remove(row);
    }
  }

  async #remove({ key, rev, value: { done, requestKey = null } }: Versioned<RolloutRow>): Promise<void> {
    const { rows, requests, results } = this.#options;
    if (requestKey !== null) await requests.remove(requestKey);
    if ((await rows.remove(key, rev)) && done !== null) await results.remove(done.resultKey, done);
  }

  /** Requests of rollouts that have ended, whose server was lost before it removed them. */
  async #removeLeftRequests(): Promise<void> {
    for await (const { key, value } of this.#options.rows.each({ index: "left", value: "request" })) await this.#removeRequest(key, value);
  }

  async #removeRequest(key: string, { requestKey = null }: RolloutRow): Promise<void> {
    if (requestKey === null) return;
    const { rows, requests } = this.#options;
    await requests.remove(requestKey);
    await rows.update(key, (row) => (row.state === "done" && row.requestKey === requestKey ? { ...row, requestKey: null } : null));
  }
}

/** A row has a lease only while it is played. */
export function holds(row: RolloutRow, lease: RolloutLease): boolean {
  return row.lease?.key === lease.key;
}
