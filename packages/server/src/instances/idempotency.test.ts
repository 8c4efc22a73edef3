import { describe, expect, it } from "vitest";
import { Collection } from "../stores/collection.ts";
import { MemoryStore } from "../stores/memory/store.ts";
import { Idempotency, idempotencyIndexes } from "./idempotency.ts";

function open() {
  const clock = { now: new Date("2026-01-12T03:25:46.000Z") };
  const rows = new Collection(new MemoryStore(), "idempotency", idempotencyIndexes);
  return { clock, rows, keys: new Idempotency(rows, () => clock.now) };
}

describe("idempotency keys", () => {
  it("belong to the first of concurrent requests", async () => {
    const { keys } = open();
    const reserved = await Promise.all(Array.from({ length: 10 }, (_, at) => keys.reserve("ada", "k", { a: 1 }, [`i-${at}`])));
    expect(new Set(reserved.map(({ instanceIds }) => instanceIds[0])).size).toBe(1);
    expect((await keys.reserve("bob", "k", { a: 1 }, ["b"])).instanceIds).toEqual(["b"]);
  });

  it("accept the same request with its fields in any order, and refuse a different one", async () => {
    const { keys } = open();
    await keys.reserve("ada", "k", { a: 1, b: { c: [1, { d: 2, e: null }], f: "x" } }, ["i"]);
    expect((await keys.reserve("ada", "k", { b: { f: "x", c: [1, { e: null, d: 2 }] }, a: 1 }, ["j"])).instanceIds).toEqual(["i"]);
    await expect(keys.reserve("ada", "k", { a: 1 }, ["j"])).rejects.toMatchObject({ code: "request.conflict" });
    await expect(keys.reserve("ada", "x".repeat(257), {}, ["j"])).rejects.toMatchObject({ code: "request.invalid" });
  });

  it("are kept for a day, and not much longer", async () => {
    const { keys, clock, rows } = open();
    await keys.reserve("ada", "k", {}, ["i"]);
    clock.now = new Date(clock.now.getTime() + 24 * 3_600_000);
    await keys.sweep();
    expect((await keys.reserve("ada", "k", {}, ["j"])).instanceIds).toEqual(["i"]);
    clock.now = new Date(clock.now.getTime() + 2 * 3_600_000);
    await keys.sweep();
    expect(await rows.list({ limit: 1 })).toEqual([]);
  });
});
