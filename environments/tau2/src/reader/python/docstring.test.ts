import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readDocstring } from "./docstring.ts";

const anyText = fc.array(fc.integer({ min: 0, max: 0xffff })).map((points) => String.fromCharCode(...points));
const word = fc.stringMatching(/^[a-z]{1,8}$/);
const sentence = fc.array(word, { minLength: 1, maxLength: 6 }).map((words) => words.join(" "));

describe("a docstring", () => {
  it("can be any text", () => {
    const pieces = fc.array(
      fc.constantFrom("Args:", "Returns:", "Raises:", "\n", "\n\n", "    ", "\t", "x: y", "x (int): y", "word", ":"),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          anyText,
          pieces.map((found) => found.join("")),
        ),
        (text) => {
          expect(typeof readDocstring(text).summary).toBe("string");
        },
      ),
    );
  });

  it("parses every section, at any indentation", () => {
    const parameters = fc.uniqueArray(fc.tuple(word, fc.array(sentence, { minLength: 1, maxLength: 3 })), {
      selector: ([name]) => name,
      minLength: 1,
    });
    fc.assert(
      fc.property(
        sentence,
        fc.array(sentence),
        parameters,
        sentence,
        fc.integer({ min: 0, max: 12 }),
        (summary, details, args, returns, width) => {
          const indent = " ".repeat(width);
          const items = args.flatMap(([name, [first, ...rest]]) => [`    ${name}: ${first}`, ...rest.map((line) => `        ${line}`)]);
          const lines = [summary, "", ...details, "", "Args:", ...items, "", "Returns:", `    ${returns}`, ""];
          const found = readDocstring(lines.map((line, index) => (index > 0 && line ? indent + line : line)).join("\n"));
          expect(found).toMatchObject({ summary, details: details.join("\n"), returns });
          expect([...found.parameters]).toEqual(args.map(([name, text]) => [name, text.join("\n")]));
        },
      ),
    );
  });

  it("reads types in brackets, return types, and errors", () => {
    const found = readDocstring(
      "Do.\n\nArgs:\n  n (int, optional): Count: many.\n\nReturns:\n  str: The answer.\n\nRaises:\n  ValueError: If bad.\n",
    );
    expect([...found.parameters]).toEqual([["n", "Count: many."]]);
    expect(found.returns).toBe("The answer.");
    expect(found.raises).toEqual([{ type: "ValueError", text: "If bad." }]);
  });

  it("ends its summary with its first line", () => {
    expect(readDocstring("It begins\n    and goes on.\n    Checks:\n        - one")).toMatchObject({
      summary: "It begins",
      details: "and goes on.\nChecks:\n    - one",
    });
  });

  it("is all description if an item of a section has no colon", () => {
    expect(readDocstring("Do.\n\nArgs:\n    nothing to say\n")).toMatchObject({ summary: "Do.", details: "Args:\n    nothing to say" });
  });
});
