import { setTimeout } from "node:timers/promises";
import { type Backoff, isPlatformError, messageOf, PlatformError, pauseAfter } from "@aenv/contract";
import type { ShownText } from "../config/shown-text.ts";
import type { Collection } from "../stores/collection.ts";
import { Alarms } from "./alarms.ts";
import { type Due, dueNow, dueOf } from "./expiry.ts";
import { FailureReports } from "./failure-reports.ts";
import { type InstanceRow, LIVE, withStatus } from "./row.ts";

export interface InstanceTableOptions {
  readonly rows: Collection<InstanceRow>;
  readonly now: () => Date;
  /** Called after every change, with the row before it; null for a new row. */
  readonly onChange: (row: InstanceRow, before: InstanceRow | null) => void;
  /** Called for a row that was read for a caller. */
  readonly onRead?: (row: InstanceRow) => void;
  /** Called when a live instance has expired or is idle for too long. */
  readonly onDue: (row: InstanceRow, what: Exclude<Due["what"], "forget">) => Promise<void>;
  /** Called when due work fails; it is retried. */
  readonly onFailure: (error: unknown) => void;
  /** Removes from the reason of a failure what clients may not read. */
  readonly shown?: ShownText;
}

/** Interval of retries while the store is unavailable. */
const RETRY_MS = 500;
const DUE_BACKOFF: Backoff = { firstMs: RETRY_MS, longestMs: 60_000 };

/** The rows of instances. Every change goes through here, so that timers are set and `onChange` is called. */
export class InstanceTable {
  readonly rows: Collection<InstanceRow>;
  readonly #options: InstanceTableOptions;
  readonly #alarms: Alarms;
  readonly #closing = new AbortController();
  /** Consecutive failures of due work, by instance. */
  readonly #failures = new Map<string, number>();
  readonly #reports: FailureReports;

  constructor(options: InstanceTableOptions) {
    this.rows = options.rows;
    this.#options = options;
    this.#alarms = new Alarms(
      (id) => void this.#onAlarm(id),
      () => options.now().getTime(),
    );
    this.#reports = new FailureReports(options.onFailure, () => options.now().getTime());
  }

  async find(id: string): Promise<InstanceRow | null> {
    const row = (await this.rows.find(id))?.value ?? null;
    if (row !== null) this.#options.onRead?.(row);
    return row;
  }

  /** The live instances in a sandbox, those of other servers included. */
  async inSandbox(sandboxId: string): Promise<InstanceRow[]> {
    const found: InstanceRow[] = [];
    for await (const { value } of this.rows.each({ index: "sandbox", value: sandboxId })) found.push(value);
    return found;
  }

  get #shown(): ShownText {
    return this.#options.shown ?? ((text) => text);
  }

  /** Inserts a new row unless its owner has reached the limit. */
  async insert(row: InstanceRow, max: number): Promise<void> {
    let inserted: Awaited<ReturnType<Collection<InstanceRow>["insert"]>>;
    try {
      inserted = await this.rows.insert(row.id, row, { limit: { index: "liveOwner", value: row.owner, max } });
    } catch (error) {
      // The row may have been stored all the same, and no start follows.
      void this.#failOwn(row, error).catch(() => {});
      throw error;
    }
    if (inserted === "limit") {
      throw new PlatformError("quota.exceeded", `Instance count exceeds limit: ${max}; end some, or ask for more`, {
        details: { owner: row.owner, limit: max, retryAfterSeconds: 5 },
      });
    }
    if (inserted === "exists") throw new PlatformError("instance.exists", `instance '${row.id}' exists already`);
    this.#changed(row, null);
  }

  /** Inserts rows: all of them, or none. The first is inserted alone, so that of two requests with its id only one goes on. */
  async insertAll([first, ...others]: readonly [InstanceRow, ...InstanceRow[]], max: number): Promise<void> {
    await this.insert(first, max);
    const inserting = others.map((row) => this.insert(row, max));
    const inserted = await Promise.allSettled(inserting);
    if (inserted.every(({ status }) => status === "fulfilled")) return;
    // Nothing of them has started, and a request that is repeated shall find no trace.
    for (const [at, row] of others.entries()) if (inserted[at]?.status === "fulfilled") await this.rows.remove(row.id);
    await this.rows.remove(first.id);
    await Promise.all(inserting);
  }

  /** Changes a row; an error if it is gone or the change returns null. */
  async change(id: string, change: (row: InstanceRow, now: Date) => InstanceRow | null): Promise<InstanceRow> {
    let before: InstanceRow | null = null;
    const next = await this.rows.update(id, (row) => {
      before = row;
      return change(row, this.#options.now());
    });
    if (next === null) throw new PlatformError("instance.not_found", `instance '${id}' not found, or it has ended`);
    this.#changed(next, before);
    return next;
  }

  /** Marks an instance as failed unless it has ended already. Retried while the store is unavailable. */
  async fail(id: string, error: unknown, isStart?: boolean): Promise<void> {
    await this.retryUntilStored(() =>
      this.change(id, (row, now) => failed(row, error, now, isStart ?? row.status !== "Running", this.#shown)),
    );
  }

  /** The same, but only for this very row: another request with the same idempotency key may have inserted its own under the id. */
  async #failOwn({ id, agentKey }: InstanceRow, error: unknown): Promise<void> {
    await this.retryUntilStored(() =>
      this.change(id, (row, now) => (row.agentKey === agentKey ? failed(row, error, now, true, this.#shown) : null)),
    );
  }

  /** Retries a write until the store is available again. A row that has ended or is gone is no error. */
  async retryUntilStored(work: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await work();
        return;
      } catch (error) {
        if (isPlatformError(error, "instance.not_found")) return;
        if (!isPlatformError(error, "store.unavailable") || this.#closing.signal.aborted) throw error;
      }
      await setTimeout(RETRY_MS, undefined, { signal: this.#closing.signal, ref: false }).catch(() => {});
    }
  }

  /** Does due work that has no timer on this server, because the server that set it has died. */
  async sweep(): Promise<void> {
    for await (const { value: row } of this.rows.each({ index: "all", value: "yes" })) {
      if (dueNow(row, this.#options.now()) !== null) await this.#onAlarm(row.id);
    }
  }

  close(): void {
    this.#closing.abort();
    this.#alarms.close();
  }

  #changed(row: InstanceRow, before: InstanceRow | null): void {
    if (!this.#closing.signal.aborted) this.#alarms.set(row.id, dueOf(row).at);
    this.#options.onChange(row, before);
  }

  async #onAlarm(id: string): Promise<void> {
    try {
      await this.#doDue(id);
      this.#failures.delete(id);
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      const failures = (this.#failures.get(id) ?? 0) + 1;
      this.#failures.set(id, failures);
      this.#alarms.set(id, this.#options.now().getTime() + pauseAfter(failures, DUE_BACKOFF));
      this.#reports.note(error);
    }
  }

  async #doDue(id: string): Promise<void> {
    const row = await this.rows.find(id);
    if (row === null) return;
    const what = dueNow(row.value, this.#options.now());
    if (what === null) this.#alarms.set(id, dueOf(row.value).at);
    else if (what === "forget") await this.rows.remove(id, row.rev);
    else await this.#options.onDue(row.value, what);
  }
}

function failed(row: InstanceRow, error: unknown, now: Date, isStart: boolean, shown: ShownText): InstanceRow | null {
  const reason = shown(messageOf(error));
  // The code is returned to callers that wait for the start. A later failure is only an event of the instance.
  const reasonCode = !isStart ? null : isPlatformError(error) ? error.code : "instance.start_failed";
  return withStatus(row, LIVE, "Failed", reason, now, { reason, reasonCode, slot: null });
}
