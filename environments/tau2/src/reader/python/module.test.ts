import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { float, toInt } from "../../python/values/values.ts";
import { ReaderError } from "../error.ts";
import { readModule } from "./module.ts";
import { parseExpression } from "./source.ts";

const anyText = fc.array(fc.integer({ min: 0, max: 0xffff })).map((points) => String.fromCharCode(...points));
const pieces = [
  "def ",
  "class A",
  "(",
  ")",
  "[",
  "]",
  "{",
  "}",
  ":",
  "\n",
  "    ",
  "@",
  "x",
  "=",
  ",",
  '"',
  "'",
  '"""',
  "f'",
  "\\",
  "1",
  ".",
  "*",
  "-",
  "from ",
  "import ",
  "if ",
  ";",
  "#",
  "lambda",
];
const pythonLike = fc.array(fc.constantFrom(...pieces), { maxLength: 40 }).map((found) => found.join(""));

describe("the Python reader", () => {
  it("parses any text, or throws a ReaderError with the line", () => {
    fc.assert(
      fc.property(fc.oneof(anyText, pythonLike), (text) => {
        for (const read of [readModule, parseExpression]) {
          try {
            read(text);
          } catch (error) {
            expect(error).toBeInstanceOf(ReaderError);
            expect((error as ReaderError).line).toBeGreaterThan(0);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it("decodes any string literal", () => {
    const escaped = (text: string, quote: string): string =>
      [...text]
        .map((character) => {
          if (character === "\\" || character === quote) return `\\${character}`;
          const point = character.codePointAt(0) as number;
          if (point < 32) return `\\x${point.toString(16).padStart(2, "0")}`;
          return point > 0xffff
            ? `\\U${point.toString(16).padStart(8, "0")}`
            : point > 126
              ? `\\u${point.toString(16).padStart(4, "0")}`
              : character;
        })
        .join("");
    fc.assert(
      fc.property(anyText, fc.constantFrom('"', "'"), fc.boolean(), (text, quote, isTriple) => {
        const quotes = isTriple ? quote.repeat(3) : quote;
        expect(parseExpression(`${quotes}${escaped(text, quote)}${quotes}`)).toMatchObject({ kind: "constant", value: text });
      }),
    );
  });

  it("reads the value of any number literal", () => {
    fc.assert(
      fc.property(fc.oneof(fc.nat(), fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 })), (value) => {
        expect(parseExpression(String(value))).toMatchObject({
          kind: "constant",
          value: Number.isInteger(value) && !/[.e]/.test(String(value)) ? toInt(value) : float(value),
        });
      }),
    );
  });

  it("leaves raw strings, unknown escapes and the braces of f-strings as written", () => {
    expect(parseExpression(String.raw`r"\n" "\d" f"{a["b"]}{{"`)).toMatchObject({ value: String.raw`\n\d{a["b"]}{{`, kind: "formatted" });
  });

  it("names the line of a syntax error", () => {
    expect(() => readModule("x = 1\ny = 'open\n")).toThrow("python:2: unterminated string literal");
    expect(() => readModule("x = (\n1]\n")).toThrow('python:2: unmatched "]"');
    expect(() => readModule("if x:\n    y\n  z\n")).toThrow("python:3: unindent does not match any outer indentation level");
  });

  it("skips code in the place of a value", () => {
    const module = readModule("a = lambda x: x\nb: int = 1 if a else 2\nc = Field(default_factory=lambda: [1, 2], description='d')\n");
    expect(module.assignments.get("a")?.value?.kind).toBe("code");
    expect(module.assignments.get("b")?.value?.kind).toBe("code");
    expect(module.assignments.get("c")?.value?.kind).toBe("call");
  });
});
