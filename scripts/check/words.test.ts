import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { formatProblem } from "./problem.ts";
import { checkWords, findWords } from "./words.ts";

describe("checkWords", () => {
  it("names the place of a replaced word in a file name, a name, a comment and a page, and the word to use", async () => {
    using tree = temporaryTree({
      "src/box-client.ts": "export const a = 1;\n",
      "src/a.ts": "// A seat.\nconst ownBoxId = 1;\n",
      "docs/a.md": "# The door\n",
    });
    expect((await checkWords(tree.path)).map(formatProblem).sort()).toEqual([
      "docs/a.md:1: 'door': use agent API or trainer API",
      "src/a.ts:1: 'seat': use slot",
      "src/a.ts:2: 'box': use sandbox",
      "src/box-client.ts: 'box': use sandbox",
    ]);
  });

  it("ignores the words of a benchmark's data", async () => {
    using tree = temporaryTree({ "environments/tau2/src/a.ts": "const available_seats = 1;\n" });
    expect(await checkWords(tree.path)).toEqual([]);
  });
});

describe("findWords", () => {
  it.each(["boxId", "ProcessBox", "AENV_BOX", "#boxes", "a box."])("finds it in %s", (text) => {
    expect(findWords(text)).toHaveLength(1);
  });

  it.each(["sandbox", "Sandboxes", "inbox", "outdoor", "box-sizing: border-box", "seating"])("finds nothing in %s", (text) => {
    expect(findWords(text)).toEqual([]);
  });
});
