import { PlatformError } from "@aenv/contract";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { Collection } from "../stores/collection.ts";
import { MemoryStore } from "../stores/memory/store.ts";
import type { Store } from "../stores/store.ts";
import { InstanceTable, type InstanceTableOptions } from "./instance-table.ts";
import { type InstanceRow, instanceIndexes } from "./row.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
  onTestFinished(() => void vi.useRealTimers());
});

const START = new Date(0).toISOString();

function rowOf(id: string, agentKey: string): InstanceRow {
  const times = { createdAt: START, updatedAt: START, lastUsedAt: START, expiresAt: new Date(60_000).toISOString(), ttl: "1m" };
  const kept = { slot: null, server: "r-1", group: null, events: [], reason: null, reasonCode: null, idleSeconds: null };
  const environment = { name: "shop", version: "1.0.0" };
  const asked = { labels: {}, task: null, seed: 1, datasource: "", image: null, digest: "" };
  return { id, agentKey, owner: "ada", environment, status: "Creating", ...times, ...kept, ...asked };
}

function openLedger(options: Partial<InstanceTableOptions> & { readonly store?: Store } = {}) {
  const { store = new MemoryStore(), ...rest } = options;
  const failures: unknown[] = [];
  const table = new InstanceTable({
    rows: new Collection(store, "instance", instanceIndexes),
    now: () => new Date(),
    onChange: () => {},
    onDue: async () => {},
    onFailure: (error) => void failures.push(error),
    ...rest,
  });
  onTestFinished(() => table.close());
  return { table, failures };
}

describe("due work that fails", () => {
  it("is retried with exponential backoff, and reported once a minute for each cause", async () => {
    const tried: number[] = [];
    const { table, failures } = openLedger({
      onDue: async ({ id }) => {
        tried.push(Date.now() - 60_000);
        throw new PlatformError("sandbox.lost", `the sandbox of ${id} does not end`);
      },
    });
    await table.insert(rowOf("a", "key-a"), 10);
    await vi.advanceTimersByTimeAsync(60_000 + 32_000);
    expect(tried).toEqual([0, 500, 1_500, 3_500, 7_500, 15_500, 31_500]);
    expect(failures).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(10 * 60_000);
    // Once a minute from then on.
    expect(tried.slice(7, 10)).toEqual([63_500, 123_500, 183_500]);
    expect(failures.length).toBeLessThanOrEqual(12);
  });

  it("is reported by cause: many instances that fail for the same reason are one report", async () => {
    const { table, failures } = openLedger({
      onDue: async ({ id }) => {
        throw id.startsWith("a") ? new PlatformError("sandbox.lost", `of ${id}`) : new Error("another fault");
      },
    });
    for (let n = 0; n < 50; n++) await table.insert(rowOf(`a-${n}`, `key-${n}`), 100);
    await table.insert(rowOf("b", "key-b"), 100);
    await vi.advanceTimersByTimeAsync(62_000);
    expect(failures).toEqual([expect.objectContaining({ code: "sandbox.lost" }), new Error("another fault")]);
  });

  it("is not retried when the row is gone", async () => {
    let tries = 0;
    const { table } = openLedger({
      onDue: async () => {
        tries++;
        throw new Error("no");
      },
    });
    await table.insert(rowOf("a", "key-a"), 10);
    await vi.advanceTimersByTimeAsync(60_500);
    expect(tries).toBe(2);
    await table.rows.remove("a");
    await vi.advanceTimersByTimeAsync(10 * 60_000);
    expect(tries).toBe(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("starts again with short pauses after a success", async () => {
    const tried: number[] = [];
    let isBroken = true;
    const { table } = openLedger({
      onDue: async (row) => {
        tried.push(Date.now());
        if (isBroken) throw new Error("no");
        isBroken = true;
        await table.change(row.id, (latest, now) => ({ ...latest, expiresAt: new Date(now.getTime() + 60_000).toISOString() }));
      },
    });
    await table.insert(rowOf("a", "key-a"), 10);
    await vi.advanceTimersByTimeAsync(61_500);
    isBroken = false;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(tried).toEqual([60_000, 60_500, 61_500, 63_500]);
    await vi.advanceTimersByTimeAsync(60_500);
    expect(tried.slice(4)).toEqual([123_500, 124_000]);
  });
});

describe("an insertion whose outcome is unknown", () => {
  /** The store fails the first insertion: after the row was written, or before. */
  function unsure(isWritten: boolean): Store {
    let isFirst = true;
    return new Proxy(new MemoryStore(), {
      get: (target, name) => {
        const value = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return async (...args: unknown[]) => {
          if (name !== "insert" || !isFirst) return value.apply(target, args);
          isFirst = false;
          if (isWritten) await value.apply(target, args);
          throw new PlatformError("store.unavailable", "the connection broke");
        };
      },
    });
  }

  it("leaves no row in `Creating` that no server starts", async () => {
    const { table } = openLedger({ store: unsure(true) });
    await expect(table.insert(rowOf("a", "key-a"), 10)).rejects.toMatchObject({ code: "store.unavailable" });
    await vi.advanceTimersByTimeAsync(0);
    expect(await table.find("a")).toMatchObject({ status: "Failed", reasonCode: "store.unavailable" });
  });

  it("does not fail the row that another request has inserted under the same id", async () => {
    const { table } = openLedger({ store: unsure(false) });
    const lost = table.insert(rowOf("a", "key-of-the-loser"), 10);
    const won = table.insert(rowOf("a", "key-of-the-winner"), 10);
    await expect(lost).rejects.toMatchObject({ code: "store.unavailable" });
    await won;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await table.find("a")).toMatchObject({ status: "Creating", agentKey: "key-of-the-winner" });
  });
});
