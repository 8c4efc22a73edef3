import { setTimeout } from "node:timers/promises";
import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { Collection } from "../stores/collection.ts";
import { Alarms } from "./alarms.ts";
import { type Due, dueNow, dueOf } from "./expiry.ts";
import { type InstanceRow, LIVE, moved } from "./row.ts";

export interface LedgerOptions {
  readonly rows: Collection<InstanceRow>;
  readonly now: () => Date;
  /** Told of every change, with the row as it was before; null for a new one. */
  readonly onChange: (row: InstanceRow, before: InstanceRow | null) => void;
  /** Called when the time of a live instance is over. */
  readonly onDue: (row: InstanceRow, what: Exclude<Due["what"], "forget">) => Promise<void>;
}

/** While the store is away, what has to be written is tried again so often. */
const RETRY_MS = 500;

/** The rows of instances. Every change goes through here, so that alarms are set and whoever must hear of it does. */
export class Ledger {
  readonly rows: Collection<InstanceRow>;
  readonly #options: LedgerOptions;
  readonly #alarms: Alarms;
  readonly #closing = new AbortController();

  constructor(options: LedgerOptions) {
    this.rows = options.rows;
    this.#options = options;
    this.#alarms = new Alarms(
      (id) => void this.#ring(id),
      () => options.now().getTime(),
    );
  }

  async find(id: string): Promise<InstanceRow | null> {
    return (await this.rows.find(id))?.value ?? null;
  }

  /** Writes a new row down, if its owner may have one more. */
  async insert(row: InstanceRow, max: number): Promise<void> {
    let inserted: Awaited<ReturnType<Collection<InstanceRow>["insert"]>>;
    try {
      inserted = await this.rows.insert(row.id, row, { limit: { index: "liveOwner", value: row.owner, max } });
    } catch (error) {
      // The row may be there all the same, and nobody is going to start it.
      void this.fail(row.id, error).catch(() => {});
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
    const reason = messageOf(error);
    const code = isPlatformError(error) ? error.code : "instance.start_failed";
    await this.insist(() =>
      this.change(id, (row, now) => {
        // Only who waited for its start is answered with the error; later it is part of the instance's story.
        const reasonCode = (isStart ?? row.status !== "Running") ? code : null;
        return moved(row, LIVE, "Failed", reason, now, { reason, reasonCode, seat: null });
      }),
    );
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
    } catch {
      if (!this.#closing.signal.aborted) this.#alarms.set(id, this.#options.now().getTime() + RETRY_MS);
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
