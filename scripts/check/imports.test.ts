// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are source text
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findImports } from "./imports.ts";

const specifiersOf = (source: string) => findImports(source).map((found) => found.specifier);

describe("findImports", () => {
  it.each([
    ['import { a } from "x";', false],
    ['import a, { b as c } from "x";', false],
    ['import * as a from "x";', false],
    ['import "x";', false],
    ['import type { A } from "x";', false],
    ['import type A from "x";', false],
    ['import type, { a } from "x";', false],
    ['import type from "x";', false],
    ['import { type A } from "x";', false],
    ['import data from "x" with { type: "json" };', false],
    ['export { a } from "x";', false],
    ['export * from "x";', false],
    ['export * as a from "x";', false],
    ['export { a as "b c" } from "x";', false],
    ['export type { A } from "x";', false],
    ['const a = await import("x");', true],
    ["const a = await import(`x`);", true],
    ['type A = typeof import("x");', true],
    ['import {\n  a,\n  // from "y"\n  b,\n} from\n  "x";', false],
    ['const t = `${await import("x")} import "y"`;', true],
  ])("reads %s", (source, isDynamic) => {
    expect(findImports(source)).toEqual([expect.objectContaining({ specifier: "x", isDynamic })]);
  });

  it.each([
    "const a = \"import b from 'x'\";",
    "// import 'x'",
    "/* export * from 'x' */",
    'const a = `import "x"`;',
    'const a = /import "x"/g;',
    'const a = /[/"]/; b("import");',
    "const a = import.meta.url;",
    'loader.import("x");',
    'const a = { import: "x", export: "y" };',
    'export const from = "x";',
    'export type A = "x";',
    'export default "x";',
    'export function from(a = "x") {}',
    'const path = "a"; import(path);',
    'export interface A { from: "x" }',
  ])("finds nothing in %s", (source) => {
    expect(findImports(source)).toEqual([]);
  });

  it("distinguishes a division from a regular expression", () => {
    expect(specifiersOf('const a = b / 2; import("x"); const c = d / e;')).toEqual(["x"]);
    expect(specifiersOf('const a = (1) / 2; import("x"); const c = list[0] / 2;')).toEqual(["x"]);
  });

  it("gives the position of each import", () => {
    const source = 'import "a";\n\nimport b from "b";\n';
    expect(findImports(source).map((found) => source.slice(found.at, found.at + 8))).toEqual(['import "', "import b"]);
  });

  it("finds exactly the imports in any mixture of imports and other text", () => {
    const specifier = fc.stringMatching(/^[@a-z./-]{1,12}$/);
    const importing = fc
      .tuple(
        fc.constantFrom(
          "import a from Q;",
          "import Q;",
          "import type { A } from Q;",
          "export * from Q;",
          "export { a, type B } from Q;",
          "void import(Q);",
          "const t = `a${await import(Q)}b`;",
        ),
        specifier,
        fc.constantFrom('"', "'"),
      )
      .map(([form, name, quote]) => ({ text: form.replace("Q", quote + name + quote), names: [name] }));
    const other = fc
      .constantFrom(
        "const a = 1;",
        "// it's a comment: import 'no'",
        '/* "unbalanced */',
        'const q = "it\'s";',
        "const r = /[\"'`]/u.test(a);",
        "const n = a / b / 2;",
        'const t = `"${ { a: "}" }.a }\\` ${`${1}`}`;',
        "export const from = 1;",
        "class A { static import = 1; }",
        "if (a) { b(); }",
      )
      .map((text) => ({ text, names: [] as string[] }));
    fc.assert(
      fc.property(fc.array(fc.oneof(importing, other)), (parts) => {
        expect(specifiersOf(parts.map((part) => part.text).join("\n"))).toEqual(parts.flatMap((part) => part.names));
      }),
    );
  });

  it("does not throw on any text", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("`", "${", "}", '"', "'", "/", "\\", "\n", "import ", "from ", "(", "a", "*", "é") }),
        (text) => {
          findImports(text);
        },
      ),
    );
  });
});
