import type { RolloutResult } from "@aenv/contract";
import { MemoryStore } from "@aenv/server/testing";
import type { Versioned } from "@aenv/server/trainer-services";
import fc from "fast-check";
import { expect, it } from "vitest";
import { MAX_RESULT_BYTES, type ResultTexts, StoredResults, textsOf } from "./stored-results.ts";

/** A store that counts the characters that are read from it. */
class CountingStore extends MemoryStore {
  read = 0;

  override async get<T>(kind: string, key: string): Promise<Versioned<T> | null> {
    const row = await super.get<T>(kind, key);
    this.read += JSON.stringify(row).length;
    return row;
  }
}

function open() {
  const store = new CountingStore();
  const results = new StoredResults(store);
  const rows = async () => {
    const kinds = ["rollout-result", "rollout-result-part"].map((kind) => store.list(kind, { limit: 1_000 }));
    return (await Promise.all(kinds)).flat().length;
  };
  const insert = (key: string, result: unknown) => results.insert(key, textsOf(result as RolloutResult) as ResultTexts);
  const read = async (key: string, fields: ReadonlySet<string> | null = null) => {
    let text = "";
    const one = await results.open(key);
    if (one === null) return null;
    for await (const part of one.texts(fields)) {
      // Each part is encoded for itself when it is sent.
      text += Buffer.from(part).toString("utf8");
    }
    return JSON.parse(text) as unknown;
  };
  return { store, results, rows, insert, read };
}

/** Longer than a row with a part of a field, with characters of two units at any place. */
const long = fc
  .tuple(fc.constantFrom("😀", "a", '"', "ключ"), fc.string({ unit: "binary", maxLength: 3 }))
  .map(([one, start]) => (start + one.repeat(300_000)).toWellFormed());

it("returns any result as it was, whole or with some fields, and leaves no row when it is removed", async () => {
  const value = fc.oneof({ weight: 4, arbitrary: fc.jsonValue() }, { weight: 1, arbitrary: long });
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.constantFrom("id", "messages", "turns", "outcome", "tools"), value), async (given) => {
      const { results, rows, insert, read } = open();
      const result = JSON.parse(JSON.stringify(given)) as Record<string, unknown>;
      const size = await insert("k", result);
      expect(await read("k")).toEqual(result);
      const some = Object.fromEntries(Object.entries(result).filter(([name]) => name === "id" || name === "turns"));
      expect(await read("k", new Set(["id", "turns"]))).toEqual(some);
      await results.remove("k", size);
      expect([await rows(), await read("k")]).toEqual([0, null]);
    }),
    { numRuns: 30 },
  );
});

it("reads no large field that is not asked for, and of one that is asked for, a part at a time", async () => {
  const { store, results, insert, read } = open();
  // Before: a list of results of 8 MB read and parsed each of them as a whole, also for `fields=outcome`.
  await insert("k", { id: "a", outcome: { kind: "scored" }, turns: "x".repeat(8_000_000) });
  expect(await read("k", new Set(["id", "outcome"]))).toEqual({ id: "a", outcome: { kind: "scored" } });
  expect(store.read).toBeLessThan(1_000);
  const texts = (await results.open("k"))?.texts(null);
  await texts?.next();
  expect(store.read).toBeLessThan(300_000);
});

it("reads a result that an earlier version of the server stored", async () => {
  const { store, results, rows, read } = open();
  const result = { id: "a", outcome: { kind: "scored", reward: 1 }, turns: [1, 2] };
  await store.insert("rollout-result", "k", result, {});
  expect(await read("k")).toEqual(result);
  expect(await read("k", new Set(["outcome"]))).toEqual({ outcome: result.outcome });
  await results.remove("k", { bytes: 1 });
  expect(await rows()).toBe(0);
});

it("has no texts for a result that is too large, also if its text would be longer than a string can be", () => {
  const half = "x".repeat(MAX_RESULT_BYTES / 2);
  const of = (result: unknown) => textsOf(result as RolloutResult);
  expect(of({ a: half.slice(10) })?.bytes).toBeLessThan(MAX_RESULT_BYTES / 2);
  expect(of({ a: half, b: half })).toBeNull();
  const tooLong = { toJSON: () => "x".repeat(2 ** 30) };
  expect(of({ a: tooLong })).toBeNull();
});
