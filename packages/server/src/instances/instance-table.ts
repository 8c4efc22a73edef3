import { setTimeout } from "node:timers/promises";
import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { ShownText } from "../shown-text.ts";
import type { Collection } from "../stores/collection.ts";
import { Alarms } from "./alarms.ts";
import { type Backoff, pauseAfter } from "./backoff.ts";
import { type Due, dueNow, dueOf } from "./expiry.ts";
import { FailureReports } from "./failure-reports.ts";
import { type InstanceRow, LIVE, moved } from "./row.ts";

export interface InstanceTableOptions {
  readonly rows: Collection<InstanceRow>;
  readonly now: () => Date;
  /** Told of every change, with the row as it was before; null for a new one. */
  readonly onChange: (row: InstanceRow, before: InstanceRow | null) => void;
  /** Called when the time of a live instance is over. */
  readonly onDue: (row: InstanceRow, what: Exclude<Due["what"], "forget">) => Promise<void>;
  /** Told why something that was due could not be done; it is tried again. */
  readonly onFailure: (error: unknown) => void;
  /** What clients may read of the reason of a failure. */
  readonly shown?: ShownText;
}

/** While the store is away, what has to be written is tried again so often. */
const RETRY_MS = 500;
/** What was due and could not be done is tried again with growing pauses. */
const DUE_BACKOFF: Backoff = { firstMs: RETRY_MS, longestMs: 60_000 };

/** The rows of instances. Every change goes through here, so that alarms are set and whoever must hear of it does. */
export class InstanceTable {
  readonly rows: Collection<InstanceRow>;
  readonly #options: InstanceTableOptions;
  readonly #alarms: Alarms;
  readonly #closing = new AbortController();
  /** Failures in a row of what is due, by instance. */
  readonly #failures = new Map<string, number>();
  readonly #reports: FailureReports;

  constructor(options: InstanceTableOptions) {
    this.rows = options.rows;
    this.#options = options;
    this.#alarms = new Alarms(
      (id) => void this.#ring(id),
      () => options.now().getTime(),
    );
    this.#reports = new FailureReports(options.onFailure, () => options.now().getTime());
  }

  async find(id: string): Promise<InstanceRow | null> {
    return (await this.rows.find(id))?.value ?? null;
  }

  get #shown(): ShownText {
    return this.#options.shown ?? ((text) => text);
  }

  /** Writes a new row down, if its owner may have one more. */
  async insert(row: InstanceRow, max: number): Promise<void> {
    let inserted: Awaited<ReturnType<Collection<InstanceRow>["insert"]>>;
    try {
      inserted = await this.rows.insert(row.id, row, { limit: { index: "liveOwner", value: row.owner, max } });
    } catch (error) {
      // The row may be there all the same, and nobody is going to start it.
      void this.#failOwn(row, error).catch(() => {});
      throw error;
    }
    if (inserted === "limit") {
      throw new PlatformError("quota.exceeded", `Instance count exceeds limit: ${max}; end some, or ask for more`, {
        details: { owner: row.owner, limit: max, retryAfterSeconds: 5 },
      });
    }
    if (inserted === "exists") throw new PlatformError("instance.exists", `instance '${row.id}' is there already`);
    this.#changed(row, null);
  }

  /** Changes a row; an error if it is gone or does not stand where the change wants it. */
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

  /** Notes why an instance failed, unless it has ended already. The store may be away; it is told as soon as it is back. */
  async fail(id: string, error: unknown, isStart?: boolean): Promise<void> {
    await this.insist(() => this.change(id, (row, now) => failed(row, error, now, isStart ?? row.status !== "Running", this.#shown)));
  }

  /** The same for a row of ours only: another request with the same idempotency key may have inserted its own under the id. */
  async #failOwn({ id, agentKey }: InstanceRow, error: unknown): Promise<void> {
    await this.insist(() => this.change(id, (row, now) => (row.agentKey === agentKey ? failed(row, error, now, true, this.#shown) : null)));
  }

  /** Does what must be done once the store can be reached; nothing if the row has ended or is gone. */
  async insist(work: () => Promise<unknown>): Promise<void> {
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

  /** Does what is due and has no alarm here: that of a process that is no more. */
  async sweep(): Promise<void> {
    for await (const { value: row } of this.rows.each({ index: "all", value: "yes" })) {
      if (dueNow(row, this.#options.now()) !== null) await this.#ring(row.id);
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

  async #ring(id: string): Promise<void> {
    try {
      await this.#do(id);
      this.#failures.delete(id);
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      const failures = (this.#failures.get(id) ?? 0) + 1;
      this.#failures.set(id, failures);
      this.#alarms.set(id, this.#options.now().getTime() + pauseAfter(failures, DUE_BACKOFF));
      this.#reports.note(error);
    }
  }

  async #do(id: string): Promise<void> {
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
  // Only who waited for its start is answered with the error; later it is one of the instance's events.
  const reasonCode = !isStart ? null : isPlatformError(error) ? error.code : "instance.start_failed";
  return moved(row, LIVE, "Failed", reason, now, { reason, reasonCode, slot: null });
}
