import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { commandsOf, findBlocks, splitServer } from "./blocks.ts";

describe("findBlocks", () => {
  it("finds shell and TypeScript in order, with their lines, and ignores other fences", () => {
    const text = "# A\n\n```sh\nls\n```\n\n```ts fragment\nx\n```\n\n```json\n{}\n```\n\n```ts\nlet a;\nlet b;\n```\n";
    expect(findBlocks(text)).toEqual([
      { language: "sh", code: "ls\n", line: 4 },
      { language: "ts", code: "let a;\nlet b;\n", line: 16 },
    ]);
  });

  it("returns the code of each fence", () => {
    const line = fc.string().filter((each) => !each.startsWith("```") && !each.includes("\n"));
    const block = fc.record({ language: fc.constantFrom("sh" as const, "ts" as const), lines: fc.array(line) });
    fc.assert(
      fc.property(fc.array(block), (blocks) => {
        const code = (lines: string[]) => lines.map((each) => `${each}\n`).join("");
        const text = blocks.map(({ language, lines }) => `words\n\`\`\`${language}\n${code(lines)}\`\`\`\n`).join("\n");
        const expected = blocks.map(({ language, lines }) => ({ language, code: code(lines) }));
        expect(findBlocks(text).map(({ language, code }) => ({ language, code }))).toEqual(expected);
      }),
    );
  });
});

describe("commandsOf", () => {
  it("returns a command per line, without comments", () => {
    expect(commandsOf("npm install   # all of it\n\n# words\necho a#b \\\n  c\n")).toEqual(["npm install", "echo a#b    c"]);
  });

  it("keeps a quoted text of several lines in one command", () => {
    expect(commandsOf("curl -d '{\n  \"a\": 1\n}'\nls\n")).toEqual(["curl -d '{\n\"a\": 1\n}'", "ls"]);
  });
});

describe("splitServer", () => {
  it("finds a command that runs until it is stopped", () => {
    expect(splitServer("npx aenvironment run")).toEqual({ before: "", server: "npx aenvironment run" });
    expect(splitServer("cd a && npm install && npx aenv server --home x")).toEqual({
      before: "cd a && npm install",
      server: "npx aenv server --home x",
    });
    expect(splitServer("npx aenvironment server --print-config")).toBeNull();
    expect(splitServer("npm run quickstart")).toBeNull();
  });
});
