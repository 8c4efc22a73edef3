import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Collection } from "./collection.ts";
import { commands, type Model } from "./fixtures/model.ts";
import type { Store } from "./store.ts";

export interface StoreSuite {
  /** Opens one more store on the same backend; the suite closes it. */
  readonly open: () => Promise<Store>;
  /** The reason to skip the whole suite. */
  readonly skipAll?: string | false;
}

/** The behaviour of every store. Each test uses its own kinds, so that tests are independent. */
export function describeStore(name: string, { open, skipAll = false }: StoreSuite): void {
  const title = skipAll === false ? `the ${name} store` : `the ${name} store (${skipAll})`;
  describe.skipIf(skipAll !== false)(title, () => {
    let store: Store;
    let other: Store;
    beforeAll(async () => {
      store = await open();
      other = await open();
    });
    afterAll(async () => {
      await store?.close();
      await other?.close();
    });
    const both = () => [store, other] as const;
    describeRows(both);
    describeText(both);
    describeIndexes(both);
    describeRaces(both);
    describeLife(both, open);
  });
}

type Both = () => readonly [Store, Store];

const newKind = () => `kind-${randomUUID()}`;
const texts = ["", " ", "*", ":", "{", "}", "{a}b", "%", "%2F", "\n", "\0", "'\"\\", "a=b", "..", "__proto__", "ключ", "鍵", "é", "😀"];

function describeRows(both: Both): void {
  it("finds nothing for an unknown key", async () => {
    const [store] = both();
    const kind = newKind();
    expect(await store.get(kind, "a")).toBeNull();
    expect(await store.list(kind, { limit: 10 })).toEqual([]);
    expect(await store.count(kind, { index: "owner", value: "ada" })).toBe(0);
    expect(await store.swap(kind, "a", 1, {}, {})).toBe(false);
    expect(await store.remove(kind, "a")).toBe(false);
  });

  it("returns a new copy of the inserted value on every read", async () => {
    const [store] = both();
    const kind = newKind();
    const value = { list: [1], left: undefined };
    await store.insert(kind, "a", value, {});
    value.list.push(2);
    const first = await store.get<typeof value>(kind, "a");
    first?.value.list.push(3);
    expect((await store.get(kind, "a"))?.value).toEqual({ list: [1] });
  });

  it("keeps the first row of a key and returns 'exists'", async () => {
    const [store] = both();
    const kind = newKind();
    expect(await store.insert(kind, "a", 1, { owner: "ada" })).toBe("inserted");
    expect(await store.insert(kind, "a", 2, { owner: "bob" })).toBe("exists");
    expect((await store.get(kind, "a"))?.value).toBe(1);
    expect(await store.count(kind, { index: "owner", value: "bob" })).toBe(0);
    expect(await store.insert(newKind(), "a", 3, {})).toBe("inserted");
  });

  it("swaps only with the latest revision", async () => {
    const [store] = both();
    const kind = newKind();
    await store.insert(kind, "a", 1, {});
    const rev = (await store.get(kind, "a"))?.rev ?? 0;
    expect(await store.swap(kind, "a", rev, 2, {})).toBe(true);
    expect(await store.swap(kind, "a", rev, 3, {})).toBe(false);
    const row = await store.get(kind, "a");
    expect(row).toEqual({ key: "a", rev: expect.any(Number), value: 2 });
    expect(row?.rev).toBeGreaterThan(rev);
  });

  it("removes any revision, or only the given one", async () => {
    const [store] = both();
    const kind = newKind();
    await store.insert(kind, "a", 1, {});
    const rev = (await store.get(kind, "a"))?.rev ?? 0;
    await store.swap(kind, "a", rev, 2, {});
    expect(await store.remove(kind, "a", rev)).toBe(false);
    expect(await store.remove(kind, "a", (await store.get(kind, "a"))?.rev)).toBe(true);
    expect(await store.remove(kind, "a")).toBe(false);
    await store.insert(kind, "a", 3, {});
    expect(await store.remove(kind, "a")).toBe(true);
    expect(await store.get(kind, "a")).toBeNull();
  });

  it("never confuses a re-inserted key with the removed row", async () => {
    const [store] = both();
    const kind = newKind();
    await store.insert(kind, "a", "old", {});
    const rev = (await store.get(kind, "a"))?.rev ?? 0;
    await store.remove(kind, "a");
    await store.insert(kind, "a", "new", {});
    expect(await store.swap(kind, "a", rev, "late", {})).toBe(false);
    expect(await store.remove(kind, "a", rev)).toBe(false);
    expect((await store.get(kind, "a"))?.value).toBe("new");
  });

  it("agrees with a model for any sequence of commands, sent to either of two stores", async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const model: Model = { rows: new Map(), pastRevs: new Map() };
        await fc.asyncModelRun(() => ({ model, real: { stores: both(), kind: newKind() } }), sequence);
      }),
    );
  });
}

function describeText(both: Both): void {
  it.each(texts)("takes %j as key, value, index name and index value", async (text) => {
    const [store] = both();
    const kind = newKind();
    const indexes = Object.fromEntries([[text, text]]);
    expect(await store.insert(kind, text, text, indexes)).toBe("inserted");
    const row = { key: text, rev: expect.any(Number), value: text };
    expect(await store.get(kind, text)).toEqual(row);
    expect(await store.list(kind, { where: { index: text, value: text }, limit: 2 })).toEqual([row]);
    expect(await store.count(kind, { index: text, value: text })).toBe(1);
    expect(await store.remove(kind, text)).toBe(true);
    expect(await store.count(kind, { index: text, value: text })).toBe(0);
  });

  it("distinguishes similar kinds, keys and index values", async () => {
    const [store] = both();
    const stem = newKind();
    const kinds = ["", ":a", "}", "{", "%7D", ":row:a"].map((end) => stem + end);
    for (const kind of kinds) {
      for (const text of texts) await store.insert(kind, text, kind + text, { "a=": text, a: `=${text}` });
    }
    for (const kind of kinds) {
      const rows = await store.list<string>(kind, { limit: 100 });
      expect(rows.map(({ key }) => key)).toHaveLength(texts.length);
      for (const { key, value } of rows) expect(value).toBe(kind + key);
      for (const value of texts) expect(await store.count(kind, { index: "a=", value })).toBe(1);
    }
  });

  it("returns any JSON under any key", async () => {
    const [store] = both();
    const kind = newKind();
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary" }), fc.jsonValue(), async (key, value) => {
        await store.remove(kind, key);
        await store.insert(kind, key, value, {});
        expect(await store.get(kind, key)).toEqual({ key, rev: expect.any(Number), value: JSON.parse(JSON.stringify(value)) });
      }),
    );
  });

  it("refuses a lone surrogate instead of replacing it", async () => {
    const [store] = both();
    const kind = newKind();
    const refusal = expect.objectContaining({ code: "request.invalid", message: '"\\ud83d" is not well-formed Unicode' });
    await expect(store.insert(kind, "\ud83d", 1, {})).rejects.toEqual(refusal);
    await expect(store.insert(kind, "a", 1, { owner: "\ud83d" })).rejects.toEqual(refusal);
    await expect(store.get(kind, "\ud83d")).rejects.toEqual(refusal);
    await expect(store.remove(kind, "\ud83d")).rejects.toEqual(refusal);
    await expect(store.list(kind, { after: "\ud83d", limit: 1 })).rejects.toEqual(refusal);
    await expect(store.count(kind, { index: "owner", value: "\ud83d" })).rejects.toEqual(refusal);
    expect(await store.list(kind, { limit: 1 })).toEqual([]);
  });

  it("stores a value of a mebibyte", async () => {
    const [store, other] = both();
    const kind = newKind();
    const text = "häuser 😀 ".repeat(2 ** 17).slice(0, 2 ** 20 - 2);
    await store.insert(kind, "large", text, {});
    const row = await other.get(kind, "large");
    expect(row?.value === text).toBe(true);
    expect(await other.swap(kind, "large", row?.rev ?? 0, `${text}!`, {})).toBe(true);
    expect((await store.list<string>(kind, { limit: 1 }))[0]?.value.length).toBe(text.length + 1);
  });
}

function describeIndexes(both: Both): void {
  it("lists in the order of code points, page by page, all rows or those with an index value", async () => {
    const [store] = both();
    const kind = newKind();
    const keys = ["", "A", "Z", "a", "a\0", "aa", "b", "é", "ﬀ", "😀"];
    for (const key of keys.toReversed()) await store.insert(kind, key, key, { length: String(key.length) });
    expect(await pages(store, kind, 3)).toEqual(keys);
    expect(await pages(store, kind, 2, { index: "length", value: "1" })).toEqual(["A", "Z", "a", "b", "é", "ﬀ"]);
    expect(await pages(store, kind, 2, { index: "length", value: "7" })).toEqual([]);
    expect((await store.list(kind, { after: "ab", limit: 1 })).map(({ key }) => key)).toEqual(["b"]);
    expect(await store.list(kind, { limit: 0 })).toEqual([]);
  });

  it("moves a row between index values when it is swapped, and out of all when it is removed", async () => {
    const [store] = both();
    const kind = newKind();
    const counts = async () =>
      Promise.all(
        [
          { index: "status", value: "Creating" },
          { index: "status", value: "Running" },
          { index: "owner", value: "ada" },
          { index: "label", value: "x" },
        ].map((where) => store.count(kind, where)),
      );
    await store.insert(kind, "a", 1, { owner: "ada", status: "Creating", label: "x" });
    expect(await counts()).toEqual([1, 0, 1, 1]);
    await store.swap(kind, "a", (await store.get(kind, "a"))?.rev ?? 0, 2, { status: "Running", owner: "ada" });
    expect(await counts()).toEqual([0, 1, 1, 0]);
    expect(await store.list(kind, { where: { index: "status", value: "Creating" }, limit: 5 })).toEqual([]);
    expect(await store.list(kind, { where: { index: "status", value: "Running" }, limit: 5 })).toMatchObject([{ key: "a", value: 2 }]);
    await store.remove(kind, "a");
    expect(await counts()).toEqual([0, 0, 0, 0]);
  });

  it("inserts up to the limit, then returns 'limit', or 'exists' for an existing key", async () => {
    const [store] = both();
    const kind = newKind();
    const limit = { index: "owner", value: "ada", max: 2 };
    expect(await store.insert(kind, "a", 1, { owner: "ada" }, { limit })).toBe("inserted");
    expect(await store.insert(kind, "b", 1, { owner: "bob" }, { limit })).toBe("inserted");
    expect(await store.insert(kind, "c", 1, { owner: "ada" }, { limit })).toBe("inserted");
    expect(await store.insert(kind, "d", 1, { owner: "ada" }, { limit })).toBe("limit");
    expect(await store.insert(kind, "a", 1, { owner: "ada" }, { limit })).toBe("exists");
    expect(await store.get(kind, "d")).toBeNull();
    await store.remove(kind, "a");
    expect(await store.insert(kind, "d", 1, { owner: "ada" }, { limit })).toBe("inserted");
    expect(await store.insert(kind, "e", 1, {}, { limit: { ...limit, max: 0 } })).toBe("limit");
  });
}

function describeRaces(both: Both): void {
  it("loses no concurrent increment", async () => {
    const kind = newKind();
    const counters = both().map((store) => new Collection<{ n: number }>(store, kind, ({ n }) => ({ parity: String(n % 2) })));
    await counters[0]?.insert("counter", { n: 0 });
    const increments = Array.from({ length: 60 }, (_, i) => counters[i % 2]?.update("counter", ({ n }) => ({ n: n + 1 })));
    const seen = await Promise.all(increments);
    expect((await counters[0]?.find("counter"))?.value).toEqual({ n: 60 });
    expect(new Set(seen.map((value) => value?.n)).size).toBe(60);
    expect(await counters[1]?.count("parity", "0")).toBe(1);
    expect(await counters[1]?.count("parity", "1")).toBe(0);
  });

  it("never exceeds the limit under concurrent inserts", async () => {
    const kind = newKind();
    const limit = { index: "owner", value: "ada", max: 7 };
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) => both()[i % 2]?.insert(kind, `row-${i}`, i, { owner: "ada" }, { limit })),
    );
    expect(results.filter((result) => result === "inserted")).toHaveLength(7);
    expect(results.filter((result) => result === "limit")).toHaveLength(43);
    expect(await both()[0].count(kind, limit)).toBe(7);
  });

  it("lets exactly one of many concurrent callers insert, swap or remove a row", async () => {
    const kind = newKind();
    const sides = Array.from({ length: 20 }, (_, i) => both()[i % 2] as Store);
    const inserted = await Promise.all(sides.map((store, i) => store.insert(kind, "a", i, {})));
    expect(inserted.filter((result) => result === "inserted")).toHaveLength(1);
    const rev = (await both()[0].get(kind, "a"))?.rev ?? 0;
    const swapped = await Promise.all(sides.map((store, i) => store.swap(kind, "a", rev, i, {})));
    expect(swapped.filter(Boolean)).toHaveLength(1);
    expect((await both()[0].get(kind, "a"))?.value).toBe(swapped.indexOf(true));
    const removed = await Promise.all(sides.map((store) => store.remove(kind, "a")));
    expect(removed.filter(Boolean)).toHaveLength(1);
  });
}

function describeLife(both: Both, open: () => Promise<Store>): void {
  it("shows each store what the other one wrote", async () => {
    const [store, other] = both();
    const kind = newKind();
    await store.insert(kind, "a", 1, { owner: "ada" });
    const row = await other.get(kind, "a");
    expect(row?.value).toBe(1);
    expect(await other.swap(kind, "a", row?.rev ?? 0, 2, { owner: "bob" })).toBe(true);
    expect(await store.swap(kind, "a", row?.rev ?? 0, 3, {})).toBe(false);
    expect(await store.list(kind, { where: { index: "owner", value: "bob" }, limit: 5 })).toMatchObject([{ value: 2 }]);
    expect(await store.remove(kind, "a")).toBe(true);
    expect(await other.count(kind, { index: "owner", value: "bob" })).toBe(0);
  });

  it("responds until it is closed, and then fails with a clear error", async () => {
    const store = await open();
    await expect(store.ping()).resolves.toBeUndefined();
    await store.close();
    await store.close();
    const refusal = expect.objectContaining({ code: "store.unavailable", message: expect.stringContaining("is closed") });
    await expect(store.ping()).rejects.toEqual(refusal);
    await expect(store.get("kind", "a")).rejects.toEqual(refusal);
    await expect(store.insert("kind", "a", 1, {})).rejects.toEqual(refusal);
    await expect(store.list("kind", { limit: 1 })).rejects.toEqual(refusal);
  });
}

/** The keys of all pages. */
async function pages(store: Store, kind: string, limit: number, where?: { index: string; value: string }): Promise<string[]> {
  const keys: string[] = [];
  for (;;) {
    const after = keys.at(-1);
    const page = await store.list(kind, { ...(where !== undefined && { where }), ...(after !== undefined && { after }), limit });
    keys.push(...page.map(({ key }) => key));
    if (page.length < limit) return keys;
  }
}
