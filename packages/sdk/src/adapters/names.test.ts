import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ToolNames, toolNames } from "./names.ts";

const VALID = /^[a-zA-Z0-9_-]{1,64}$/;

describe("toolNames", () => {
  it("leaves out the environment, so that a name is the same in every version", () => {
    expect(all("shop@1.0.0/cancel_order", "shop@1.0.0/get-order")).toEqual(["cancel_order", "get-order"]);
    expect(all("shop/cancel_order")).toEqual(all("shop@2.1.3/cancel_order"));
    expect(all("cancel_order")).toEqual(["cancel_order"]);
  });

  it("replaces characters that models do not accept by '_'", () => {
    expect(all("shop@1/orders.cancel", "shop@1/files/read", "shop@1/größe")).toEqual(["orders_cancel", "files_read", "gr__e"]);
  });

  it("distinguishes tools whose names collide, and keeps the valid one unchanged", () => {
    const [dot, plain, space] = all("e@1/a.b", "e@1/a_b", "e@1/a b");
    expect(plain).toBe("a_b");
    expect(dot).toMatch(/^a_b_[0-9a-f]{8}$/);
    expect(space).toMatch(/^a_b_[0-9a-f]{8}$/);
    expect(space).not.toBe(dot);
  });

  it("treats '-' and '_' as equal, as some frameworks do", () => {
    expect(all("e@1/a-b", "e@1/a_b").every((name) => /^a[-_]b_[0-9a-f]{8}$/.test(name))).toBe(true);
  });

  it("shortens a long name and appends the same hash in every set", () => {
    const long = `e@1/${"x".repeat(80)}`;
    const [name] = all(long);
    expect(name).toMatch(/^x{55}_[0-9a-f]{8}$/);
    expect(all(long, "e@1/other", `${long}y`)[0]).toBe(name);
  });

  it("distinguishes tools of two environments with the same name", () => {
    expect(new Set(all("news@1/search", "shop@1/search")).size).toBe(2);
  });

  it("puts the prefix before each name", () => {
    const names = toolNames(["shop@1/search"], { prefix: "shop." });
    expect(names.forModel("shop@1/search")).toBe("shop_search");
    expect(names.findTool("shop_search")).toBe("shop@1/search");
  });

  it("finds neither an unknown name nor a tool outside the set", () => {
    const names = toolNames(["e@1/a"]);
    expect(names.findTool("b")).toBeNull();
    expect(() => names.forModel("e@1/b")).toThrow("'e@1/b' is not one of the tools: e@1/a");
  });
});

describe("for any set of tools, toolNames", () => {
  // Few letters and one separator each, so that names often collide; and arbitrary strings, empty and long included.
  const alike = fc.stringMatching(/^(e@1\/)?[ab._ -]{0,4}$/);
  const anything = fc.string({ unit: "binary", maxLength: 100 });
  const long = fc.stringMatching(/^e\/x{60,70}[ab.]{0,3}$/);
  const tools = fc.array(fc.oneof(alike, anything, long), { maxLength: 30 });

  it("returns valid names, one for each tool, and finds each tool by its name", () => {
    fc.assert(
      fc.property(tools, fc.constantFrom("", "p_", "p."), (set, prefix) => {
        const names = toolNames(set, { prefix });
        const given = set.map((tool) => names.forModel(tool));
        for (const name of given) expect(name).toMatch(VALID);
        expect(given.map((name) => names.findTool(name))).toEqual(set);
        expect(new Set(given.map((name) => name.replaceAll("-", "_"))).size).toBe(new Set(set).size);
      }),
    );
  });

  it("returns the same names in any order", () => {
    fc.assert(
      fc.property(tools, (set) => {
        const [one, other] = [toolNames(set), toolNames([...set].reverse())];
        for (const tool of set) expect(one.forModel(tool)).toBe(other.forModel(tool));
      }),
    );
  });

  it("keeps a valid name that does not collide", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.stringMatching(/^[a-zA-Z0-9_]{1,64}$/)), (set) => {
        expect(all(...set.map((tool) => `e@1/${tool}`))).toEqual(set);
      }),
    );
  });

  it("finds another hash when a tool already has the hashed name", () => {
    fc.assert(
      fc.property(fc.array(alike, { minLength: 2 }), (set) => {
        const first = toolNames(set);
        const hostile = [...set, ...set.map((tool) => first.forModel(tool))];
        const names: ToolNames = toolNames(hostile);
        expect(hostile.map((tool) => names.findTool(names.forModel(tool)))).toEqual(hostile);
      }),
    );
  });
});

function all(...tools: string[]): string[] {
  const names = toolNames(tools);
  return tools.map((tool) => names.forModel(tool));
}
