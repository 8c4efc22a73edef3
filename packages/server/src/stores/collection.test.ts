import { describe, expect, it } from "vitest";
import { Collection } from "./collection.ts";
import { MemoryStore } from "./memory/store.ts";

interface Thing {
  readonly n: number;
  readonly owner: string;
}

const open = () => new Collection<Thing>(new MemoryStore(), "thing", ({ owner }) => ({ owner }));

describe("a collection", () => {
  it("derives the indexes from the value, also when it changes", async () => {
    const things = open();
    await things.insert("a", { n: 1, owner: "ada" });
    expect(await things.count("owner", "ada")).toBe(1);
    expect(await things.update("a", (thing) => ({ ...thing, owner: "bob" }))).toEqual({ n: 1, owner: "bob" });
    expect(await things.count("owner", "ada")).toBe(0);
    expect(await things.list({ where: { index: "owner", value: "bob" }, limit: 2 })).toMatchObject([{ key: "a" }]);
  });

  it("applies the change again after a concurrent change", async () => {
    const store = new MemoryStore();
    const things = new Collection<number>(store, "thing", () => ({}));
    await things.insert("a", 1);
    const rev = (await things.find("a"))?.rev ?? 0;
    const seen: number[] = [];
    const result = await things.update("a", (n) => {
      seen.push(n);
      // Synchronous, like every operation of this store.
      void store.swap("thing", "a", rev, 10, {});
      return n + 1;
    });
    expect(seen).toEqual([1, 10]);
    expect(result).toBe(11);
    expect((await things.find("a"))?.value).toBe(11);
  });

  it("leaves a row if the change returns null, and does not create a missing one", async () => {
    const things = open();
    await things.insert("a", { n: 1, owner: "ada" });
    const before = await things.find("a");
    expect(await things.update("a", () => null)).toBeNull();
    expect(await things.find("a")).toEqual(before);
    expect(await things.update("b", (thing) => thing)).toBeNull();
    expect(await things.find("b")).toBeNull();
  });

  it.each([0, 1, 499, 500, 501, 1200])("iterates over all of %i rows once, in order", async (count) => {
    const things = open();
    const keys = Array.from({ length: count }, (_, n) => String(n).padStart(5, "0"));
    for (const [n, key] of keys.entries()) await things.insert(key, { n, owner: n % 2 === 0 ? "ada" : "bob" });
    const found: string[] = [];
    for await (const { key } of things.each()) found.push(key);
    expect(found).toEqual(keys);
    let ofAda = 0;
    for await (const { value } of things.each({ index: "owner", value: "ada" })) {
      expect(value.owner).toBe("ada");
      ofAda += 1;
    }
    expect(ofAda).toBe(Math.ceil(count / 2));
  });

  it("continues after rows that are removed meanwhile", async () => {
    const things = open();
    for (let n = 0; n < 1100; n++) await things.insert(String(n).padStart(5, "0"), { n, owner: "ada" });
    let removed = 0;
    for await (const { key } of things.each()) if (await things.remove(key)) removed += 1;
    expect(removed).toBe(1100);
  });
});
