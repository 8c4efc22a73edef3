import { describe, expect, it } from "vitest";
import { Pattern } from "./pattern.ts";

const SPACES = [
  ..."\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000",
];

describe("patterns of Python", () => {
  it("have Python's whitespace", () => {
    const space = new Pattern("\\s");
    for (const char of SPACES) expect(space.match(char), char.codePointAt(0)?.toString(16)).not.toBeNull();
    for (const char of ["\ufeff", "\u200b", "\x00", "a"]) expect(space.match(char)).toBeNull();
    expect(new Pattern("[^\\S\\r\\n]").match("\n")).toBeNull();
    expect(new Pattern("[^\\S\\r\\n]").match("\u3000")).not.toBeNull();
  });

  it("have digits and letters of all scripts", () => {
    expect(new Pattern("\\d+").match("1٣𝟘x")?.[0]).toBe("1٣𝟘");
    expect(new Pattern("[\\d.]+").match("1.٣x")?.[0]).toBe("1.٣");
    expect(new Pattern("\\w+").match("aé_²x-")?.[0]).toBe("aé_²x");
    expect(new Pattern("E\\b").match("Ex")).toBeNull();
    expect(new Pattern("E\\b").match("E-")).not.toBeNull();
  });

  it("have a dot that matches all but the newline", () => {
    expect(new Pattern(".+").match("a\r\u2028b\nc")?.[0]).toBe("a\r\u2028b");
    expect(new Pattern("a.c", "S").match("a\nc")).not.toBeNull();
    expect(new Pattern(".").match("😀")?.[0]).toBe("😀");
  });

  it("have lines that only a newline ends", () => {
    expect([...new Pattern("^a$", "M").findAll("a\nb\na")].map(({ index }) => index)).toEqual([0, 4]);
    expect(new Pattern("^a", "M").search("b\ra")).toBeNull();
    expect(new Pattern("a$").match("a\n")).not.toBeNull();
    expect(new Pattern("a$").match("a\n\n")).toBeNull();
  });

  it("replace with literal text", () => {
    expect(new Pattern("a").replace("bab", "$&")).toBe("b$&b");
  });
});
