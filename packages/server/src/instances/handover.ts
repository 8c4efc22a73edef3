import { PlatformError } from "@aenv/contract";
import type { Slots } from "../slots/slots.ts";
import type { InstanceTable } from "./instance-table.ts";
import { type InstanceRow, isLive, LIVE, withEvent, withStatus } from "./row.ts";

/** Changes that wait for the store at the same time. */
const AT_ONCE = 64;

/** What becomes of the instances of servers that have died or are stopped. */
export class Handover {
  readonly #table: InstanceTable;
  readonly #slots: Slots;
  readonly #serverId: string;

  constructor(table: InstanceTable, slots: Slots, serverId: string) {
    this.#table = table;
    this.#slots = slots;
    this.#serverId = serverId;
  }

  /** The live instances of all servers. */
  async *live(): AsyncGenerator<InstanceRow> {
    for await (const { value } of this.#table.rows.each({ index: "live", value: "yes" })) yield value;
  }

  /** Marks all instances of these servers as ended; the caller destroys their sandboxes. */
  async endAll(serverIds: Iterable<string>, reason: string): Promise<void> {
    const end = (id: string) =>
      this.#table.retryUntilStored(() =>
        this.#table.change(id, (row, now) => withStatus(row, LIVE, "Terminated", reason, now, { reason, slot: null })),
      );
    for (const value of serverIds) {
      let ending: Promise<void>[] = [];
      for await (const { key } of this.#table.rows.each({ index: "liveServer", value })) {
        ending.push(end(key));
        if (ending.length < AT_ONCE) continue;
        await Promise.all(ending);
        ending = [];
      }
      await Promise.all(ending);
    }
  }

  /** Makes this server the one that manages an instance of a dead server. */
  async adopt({ id }: InstanceRow): Promise<void> {
    await this.#table.retryUntilStored(() =>
      this.#table.change(id, (row, now) =>
        isLive(row) ? { ...withEvent(row, "adopted from a server that died", now), server: this.#serverId, isFrozen: false } : null,
      ),
    );
  }

  /** Marks an instance as failed that was lost with its server. */
  async failLost(id: string, reason: string): Promise<void> {
    await this.#table.fail(id, new PlatformError("instance.start_failed", reason));
  }

  /** The same for the running forks of one request. */
  async failGroup(group: string, reason: string): Promise<void> {
    for await (const { key, value } of this.#table.rows.each({ index: "group", value: group })) {
      if (value.status === "Running") await this.#table.fail(key, new PlatformError("instance.start_failed", reason), true);
    }
  }

  /** Releases the slots of instances of these servers that other servers have ended. */
  async releaseSlots(serverIds: Iterable<string>): Promise<void> {
    const { rows } = this.#table;
    for (const value of serverIds) {
      for await (const { key, value: row } of rows.each({ index: "leaving", value })) {
        if (row.slot !== null) await this.#slots.release(row.slot, key);
        await rows.update(key, (latest) => (isLive(latest) ? null : { ...latest, slot: null }));
      }
    }
  }
}
