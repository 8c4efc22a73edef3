import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PythonSyntaxError } from "./error.ts";
import { tokenize } from "./tokens.ts";

const anyText = fc.array(fc.integer({ min: 0, max: 0xffff })).map((points) => String.fromCharCode(...points));
const pieces = [
  "x",
  "1",
  "0x",
  "1e",
  ".",
  "'",
  '"""',
  "f'",
  "b'",
  "\\",
  "\\x",
  "(",
  "]",
  "{",
  "}",
  "\n",
  "    ",
  "\t",
  "#",
  "if",
  "**=",
  "?",
];
const pythonLike = fc.array(fc.constantFrom(...pieces), { maxLength: 40 }).map((found) => found.join(""));

const kinds = (source: string) => tokenize(source).map(({ kind, text }) => (["newline", "indent", "dedent"].includes(kind) ? kind : text));

describe("the tokenizer", () => {
  it("splits any text, or throws a PythonSyntaxError with the line", () => {
    fc.assert(
      fc.property(fc.oneof(anyText, pythonLike), (text) => {
        try {
          tokenize(text);
        } catch (error) {
          expect(error).toBeInstanceOf(PythonSyntaxError);
          expect((error as PythonSyntaxError).line).toBeGreaterThan(0);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("makes tokens of indentation, and joins lines inside brackets", () => {
    expect(kinds("if x:\n    y(1,\n2)\n\n# comment\nz")).toEqual([
      ...["if", "x", ":", "newline", "indent", "y", "(", "1", ",", "2", ")", "newline", "dedent", "z", "newline"],
    ]);
  });

  it("counts the lines of strings and continuations", () => {
    expect(tokenize('"""a\nb""" \\\n x').map(({ line }) => line)).toEqual([1, 3, 3]);
  });

  it("reads a string whose f-string braces contain its own quote", () =>
    expect(kinds("f'{a['b']}' c")).toEqual(["f'{a['b']}'", "c", "newline"]));

  it("decodes the escapes that a literal of its kind has", () => {
    const values = tokenize(String.raw`'\x41\u0042\103\d\n' r'\n' b'\x41\u0042'`).map((token) =>
      token.kind === "string" ? token.value : null,
    );
    expect(values).toEqual(["ABC\\d\n", "\\n", "A\\u0042", null]);
  });

  it.each(["01", "1x", "'a", "f'{x", String.raw`'\x4'`, String.raw`'\N{DASH}'`, "(", "(]", "?"])("refuses %s", (source) => {
    expect(() => tokenize(source)).toThrow(PythonSyntaxError);
  });
});
