import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LibraryDb, openLibrary } from "../../fixtures/library.ts";
import type { Instance } from "../../python/model/model.ts";
import { assign } from "../../python/values/objects.ts";
import { Dict, float, type PyValue } from "../../python/values/values.ts";
import { copy } from "./copy.ts";
import { hashDatabase, hashValue } from "./hash.ts";

type Db = Instance<typeof LibraryDb>;

function large(): Db {
  const books = new Dict<PyValue>();
  for (let i = 0; i < 3000; i++)
    books.set(`b${i}`, Dict.of<PyValue>({ book_id: `b${i}`, title: `Title ${i} ${"x".repeat(80)}`, price: float(i) }));
  return LibraryDb.create({ opened: 1, books });
}

const base = large();

describe("the hash of a database", () => {
  it("equals the hash of its dump with sorted keys, after any edits and additions and in any order of requests", () => {
    const edits = fc.array(fc.tuple(fc.constantFrom("edit", "add", "hash", "field"), fc.nat(3500), fc.string()), { maxLength: 12 });
    fc.assert(
      fc.property(edits, (steps) => {
        const db = copy(base);
        for (const [kind, i, text] of steps) {
          const book = kind === "edit" ? db.books.edit(`b${i}`) : undefined;
          if (book !== undefined) assign(book, "title", text);
          else if (kind === "add") db.books.set(`n${text}`, copy(base.books.find("b5") ?? null) as never);
          else if (kind === "field") assign(db, "opened", i);
          else hashDatabase(db);
        }
        expect(hashDatabase(db)).toBe(hashValue(db));
        expect(hashDatabase(db)).toBe(hashValue(db));
      }),
      { numRuns: 20 },
    );
    expect(hashDatabase(copy(base))).toBe(hashValue(base));
  });
});

describe("a table", () => {
  it("shares rows for reading and copies them for editing", () => {
    const [one, two] = [copy(base), copy(base)];
    assign(one.books.edit("b1") ?? never(), "title", "mine");
    expect([one.books.find("b1")?.title, two.books.find("b1")?.title.slice(0, 7)]).toEqual(["mine", "Title 1"]);
    expect(one.books.find("b2")).toBe(two.books.find("b2"));
  });

  it("keeps file order, with new rows at the end", () => {
    const { tools } = openLibrary().create();
    const db = tools?.db as Db;
    db.books.edit("b2");
    db.books.set("b0", copy(db.books.find("b1") ?? never()));
    expect([...db.books.keys(), db.books.size]).toEqual(["b10", "b2", "b1", "b0", 4]);
  });

  it("does not let shared rows be written to", () => {
    const row = base.books.find("b3") ?? never();
    expect(() => assign(row, "title", "x")).toThrow(TypeError);
    expect(() => base.books.delete("b3")).toThrow("cannot be removed");
  });

  it("compares keys as Python does", () => {
    expect(base.books.find(5)).toBeUndefined();
    expect(() => base.books.find(["b1"])).toThrow("unhashable type: 'list'");
  });
});

function never(): never {
  throw new Error("the row exists");
}
