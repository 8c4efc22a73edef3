import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NotJsonError, toJson } from "./to-json.ts";

const problemOf = (value: unknown): string => {
  try {
    return `accepted as ${JSON.stringify(toJson(value, "it all"))}`;
  } catch (error) {
    expect(error).toBeInstanceOf(NotJsonError);
    return (error as Error).message.replace("it all cannot be written as JSON: ", "");
  }
};

describe("toJson", () => {
  it("returns an equal copy of every JSON value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const plain = toJson(value, "it");
        expect(JSON.stringify(plain)).toBe(JSON.stringify(value));
        if (typeof value === "object" && value !== null) expect(plain).not.toBe(value);
      }),
      { numRuns: 1_000 },
    );
  });

  it("either keeps every part of a value, or refuses it", () => {
    const odd = fc.constantFrom<unknown>(
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Symbol("s"),
      () => 1,
      new Error("x"),
      /x/,
      new Date(Number.NaN),
    );
    const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null), fc.bigInt(), fc.date({ noInvalidDate: true }), odd);
    const { value: anything } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie("value"), { maxLength: 4 }),
        fc.dictionary(fc.string(), tie("value"), { maxKeys: 4 }),
        fc.array(fc.tuple(fc.oneof(fc.string(), fc.integer()), tie("value")), { maxLength: 3 }).map((entries) => new Map(entries)),
        fc.array(tie("value"), { maxLength: 3 }).map((items) => new Set(items)),
      ),
    }));
    fc.assert(
      fc.property(anything, (value) => {
        const expected = leavesOf(value);
        const problem = problemOf(value);
        if (expected === null) expect(problem).not.toMatch(/^accepted/);
        else expect(leavesOf(JSON.parse(problem.replace(/^accepted as /, "")))).toEqual(expected);
      }),
      { numRuns: 1_000 },
    );
  });

  it.each<[string, unknown, unknown]>([
    ["a Map with text keys", new Map([["a", new Map([["b", 1]])]]), { a: { b: 1 } }],
    [
      "a Map with other keys",
      new Map<unknown, unknown>([
        [1, "a"],
        ["b", 2],
      ]),
      [
        [1, "a"],
        ["b", 2],
      ],
    ],
    ["a Set", new Set([1, new Set(["x"])]), [1, ["x"]]],
    ["a Date", new Date(0), "1970-01-01T00:00:00.000Z"],
    ["a bigint", { n: 12345678901234567890n }, { n: "12345678901234567890" }],
    ["a Buffer", { data: Buffer.from("hi") }, { data: "aGk=" }],
    ["part of a buffer", new Uint8Array(Buffer.from("xhi")).subarray(1), "aGk="],
    ["an ArrayBuffer", new Uint8Array([104, 105]).buffer, "aGk="],
    ["another typed array", new Float64Array([1.5, 2]), [1.5, 2]],
    ["big integers in a typed array", new BigInt64Array([5n]), ["5"]],
    ["undefined in an object", { a: undefined, b: 1 }, { b: 1 }],
    ["nothing", undefined, null],
    ["a toJSON", { at: { toJSON: (key: string) => new Map([["key", key]]) } }, { at: { key: "at" } }],
    ["a toJSON that gives the object itself", selfGiver(), { n: 1 }],
    ["a URL", new URL("http://a/"), "http://a/"],
    [
      "fields of a class",
      new (class Order {
        id = 1;
        #secret = 2;
        get both() {
          return this.id + this.#secret;
        }
      })(),
      { id: 1 },
    ],
    ["an object without a prototype", Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ["boxed values", [Object(1), Object("a"), Object(true), Object(2n)], [1, "a", true, "2"]],
    ["one object twice", twice(), { a: { n: 1 }, b: { n: 1 } }],
  ])("converts %s", (_, value, expected) => {
    expect(toJson(value, "it")).toEqual(expected);
  });

  it.each<[string, unknown, string]>([
    ["NaN", { cart: { items: [1, 2, { price: Number.NaN }] } }, "cart.items[2].price is NaN; JSON has only finite numbers"],
    ["an infinite number", [Number.NEGATIVE_INFINITY], "[0] is -Infinity; JSON has only finite numbers"],
    ["an invalid Date", { cart: { items: [0, 1, { when: new Date(Number.NaN) }] } }, "cart.items[2].when is an invalid Date"],
    ["undefined in a list", { a: [1, undefined] }, "a[1] is undefined; in a list use null"],
    // biome-ignore lint/suspicious/noSparseArray: the hole is what is tested
    ["a hole", [1, , 3], "[1] is missing: the list has a hole"],
    ["a function", { a: { run: () => 1 } }, "a.run is a function"],
    ["a symbol", Symbol("x"), "it is a symbol"],
    ["an Error", { last: new TypeError("x") }, "last is an Error; throw it, or return its message"],
    ["a Promise", { rows: Promise.resolve(1) }, "rows is a Promise; await it"],
    ["a generator", [(function* () {})()], "[0] is a generator or another iterator; convert it to an array"],
    ["an iterator of a Map", { keys: new Map().keys() }, "keys is a generator or another iterator; convert it to an array"],
    [
      "a regular expression",
      { match: /x/ },
      "match is an instance of RegExp without enumerable fields; return plain data, or give it a toJSON method",
    ],
    [
      "an object with private fields only",
      new (class Till {
        #cash = 1;
        get() {
          return this.#cash;
        }
      })(),
      "it is an instance of Till without enumerable fields; return plain data, or give it a toJSON method",
    ],
    ["a value in a Map", new Map([["first key", { n: Number.NaN }]]), '["first key"].n is NaN; JSON has only finite numbers'],
    ["a value in a Map with other keys", new Map([[1, Number.NaN]]), "[0][1] is NaN; JSON has only finite numbers"],
    ["a value in a Set", { all: new Set([1, () => 1]) }, "all[1] is a function"],
    ["what a toJSON gives", { a: { toJSON: () => ({ b: Number.NaN }) } }, "a.b is NaN; JSON has only finite numbers"],
    ["what the whole value's toJSON gives", { toJSON: () => [Number.NaN] }, "[0] is NaN; JSON has only finite numbers"],
    ["a cycle", ring(), "next.next.back is a reference to an object that contains it (a cycle)"],
    ["a toJSON without end", endless(), expect.stringContaining("nested deeper than 1000 levels") as never],
    ["a value that is too deep", deep(1_001), expect.stringContaining("nested deeper than 1000 levels") as never],
  ])("refuses %s, with its path", (_, value, problem) => {
    expect(problemOf(value)).toEqual(problem);
  });

  it("keeps a key named __proto__ as a key", () => {
    const plain = toJson(new Map([["__proto__", { admin: true }]]), "it");
    expect(JSON.stringify(plain)).toBe('{"__proto__":{"admin":true}}');
    expect((plain as { admin?: unknown }).admin).toBeUndefined();
  });

  it("accepts a value of a thousand levels, and shortens a long path", () => {
    expect(problemOf(deep(1_000))).toMatch(/^accepted/);
    expect(problemOf(deep(999, Number.NaN)).length).toBeLessThan(300);
  });

  it("rethrows what a getter throws", () => {
    const value = {
      get total(): number {
        throw new Error("not counted yet");
      },
    };
    expect(() => toJson(value, "it")).toThrow("not counted yet");
  });
});

/** The leaves of a value as text; null if one of them has no JSON form. */
function leavesOf(value: unknown): string[] | null {
  if (typeof value === "function" || typeof value === "symbol" || value instanceof Error || value instanceof RegExp) return null;
  if (typeof value === "number" && !Number.isFinite(value)) return null;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : [value.toISOString()];
  if (typeof value !== "object" || value === null) return [String(value)];
  const parts: unknown[] =
    value instanceof Map ? [...value].flat(1) : value instanceof Set || Array.isArray(value) ? [...value] : Object.entries(value).flat(1);
  const leaves: string[] = [];
  for (const part of parts) {
    const own = leavesOf(part);
    if (own === null) return null;
    leaves.push(...own);
  }
  return leaves.sort();
}

function selfGiver(): object {
  const value = { n: 1 };
  Object.defineProperty(value, "toJSON", { value: () => value });
  return value;
}

function twice(): object {
  const shared = { n: 1 };
  return { a: shared, b: shared };
}

function ring(): object {
  const root: Record<string, unknown> = {};
  root.next = { next: { back: root } };
  return root;
}

function endless(): object {
  return { toJSON: () => endless() };
}

function deep(levels: number, end: unknown = 1): unknown {
  let value = end;
  for (let level = 0; level < levels; level++) value = { a: value };
  return value;
}
