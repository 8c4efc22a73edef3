import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { checkLint, readLintErrors } from "./lint.ts";
import { formatProblem } from "./problem.ts";
import { checkTypes, readTypeErrors } from "./types.ts";

const tsconfig = { compilerOptions: { strict: true, noEmit: true, types: [] }, include: ["*.ts"] };

describe("checkTypes", () => {
  it("names the line of a type error", async () => {
    using tree = temporaryTree({ "tsconfig.json": tsconfig, "a.ts": "export const a = 1;\nexport const b: string = a;\n" });
    expect((await checkTypes(tree.path)).map(formatProblem)).toEqual(["a.ts:2: TS2322: Type 'number' is not assignable to type 'string'."]);
  });

  it("checks interop only if its packages are installed", async () => {
    using tree = temporaryTree({
      "tsconfig.json": tsconfig,
      "a.ts": "export const a = 1;\n",
      "interop/tsconfig.json": tsconfig,
      "interop/b.ts": "export const b: string = 1;\n",
    });
    expect(await checkTypes(tree.path)).toEqual([]);
    tree.write({ "interop/node_modules/x/package.json": {} });
    expect((await checkTypes(tree.path)).map((problem) => problem.file)).toEqual(["interop/b.ts"]);
  });

  it("fails when the compiler fails without naming a file", async () => {
    using tree = temporaryTree({ "tsconfig.json": "not json at all {", "a.ts": "export const a = 1;\n" });
    expect(await checkTypes(tree.path)).not.toEqual([]);
  });
});

describe("checkLint", () => {
  it("names the line that breaks a rule, and files that are not formatted", async () => {
    using tree = temporaryTree({ "biome.json": "{}\n", "a.ts": "export  const a: any = 1;\n", "b.ts": "export const b = 1;\n" });
    expect((await checkLint(tree.path)).map(formatProblem)).toEqual([
      expect.stringMatching(/^a\.ts:1: lint\/suspicious\/noExplicitAny: /),
      "a.ts: is not formatted: run npm run format",
    ]);
  });

  it("fails when biome itself fails", async () => {
    using tree = temporaryTree({ "biome.json": '{ "nonsense": true }\n', "a.ts": "export const a = 1;\n" });
    expect(await checkLint(tree.path)).not.toEqual([]);
  });
});

describe("parsing the output of the tools", () => {
  it("ignores lines without a location", () => {
    expect(readTypeErrors("  more detail\nFound 1 error.\n")).toEqual([]);
    expect(readLintErrors("Checked 3 files in 4ms.\nFound 6 errors.\n")).toEqual([]);
  });
});
