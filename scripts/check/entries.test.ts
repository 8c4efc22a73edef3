import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { checkEntries, writeEntries } from "./entries.ts";
import { formatProblem } from "./problem.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const text = (folder: string, entry: string) => readFileSync(join(folder, `packages/aenv/entry/${entry}.js`), "utf8");

describe("checkEntries", () => {
  it("fails on a name that an entry lacks, until the entries are written again", async () => {
    const names = ["index", "kit", "sdk", "adapters", "rollout"];
    const sources = names.map((name) => [`packages/aenv/src/${name}.ts`, "export const b = 1;\nexport function a(): void {}\n"]);
    const entries = names.map((name) => [`packages/aenv/entry/${name}.js`, ""]);
    using tree = temporaryTree(Object.fromEntries([["package.json", { type: "module" }], ...sources, ...entries]));
    expect((await checkEntries(tree.path)).map(formatProblem)).toContain(
      "packages/aenv/entry/index.js: does not have the names that its source exports: run `npm run format`",
    );
    await writeEntries(tree.path);
    expect(await checkEntries(tree.path)).toEqual([]);
    expect(text(tree.path, "kit")).toContain('export const {\n  a,\n  b,\n} = await import("../src/kit.ts");\n');
  });

  it("passes for the repository, whose entries export the names of their sources", async () => {
    expect(await checkEntries(root)).toEqual([]);
    expect(text(root, "index")).toContain("  defineEnvironment,\n");
  });
});
