import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { formatProblem } from "./problem.ts";
import { checkSnippets, findSnippets } from "./snippets.ts";

const tsconfig = { compilerOptions: { strict: true, module: "nodenext", target: "es2024", types: [] } };

async function problemsIn(markdown: string): Promise<string[]> {
  using tree = temporaryTree({ "tsconfig.json": tsconfig, "docs/guide.md": markdown });
  return (await checkSnippets(tree.path)).map(formatProblem);
}

describe("checkSnippets", () => {
  it("accepts blocks that compile on their own", async () => {
    expect(
      await problemsIn("```ts\nexport const a: number = 1;\n```\n\n```ts\nexport const a = await Promise.resolve('x');\n```\n"),
    ).toEqual([]);
  });

  it("names the line of the text on which a block does not compile", async () => {
    expect(await problemsIn("# Guide\n\n```ts\nconst a = 1;\nconst b: string = a;\n```\n")).toEqual([
      "docs/guide.md:5: TS2322: Type 'number' is not assignable to type 'string'.",
    ]);
  });

  it("skips fragments and other languages", async () => {
    expect(await problemsIn("```ts fragment\nunknown(1);\n```\n```sh\nnpm test\n```\n")).toEqual([]);
  });
});

describe("findSnippets", () => {
  it("gives the line where the code begins", () => {
    expect(findSnippets("a\n```ts\none\n```\nb\n```typescript\ntwo\nthree\n```\n")).toEqual([
      { code: "one\n", line: 3 },
      { code: "two\nthree\n", line: 7 },
    ]);
  });
});
