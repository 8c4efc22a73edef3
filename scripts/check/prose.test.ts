import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { checkProse, findComments, findParagraphs, findScriptComments, longSubjects, subjectFaults, wordFaults } from "./prose.ts";

describe("a comment without a subject", () => {
  it.each([
    ["Of the daemon.", "'Of'"],
    ["For each attempt.", "'For'"],
    ["By id, in the order in which they are listed.", "'By'"],
    ["One per turn.", "'One'"],
    ["One that grows meanwhile is cut.", "'One'"],
    ["In MiB.", "no subject"],
    ["From 0 up to but not including 1.", "no subject"],
    ["Beyond `modifiedMs`.", "no subject"],
    ["Before the container is created.", "no main clause"],
  ])("is found: %s", (comment, fault) => {
    expect(subjectFaults(comment)).toEqual([expect.stringContaining(fault)]);
  });

  it.each([
    "Socket of the Docker daemon.",
    "Timeout of each attempt.",
    "One call of the model.",
    "One of the two is busy until then.",
    "For example `tau2`.",
    "By default this API is strict.",
    "In Node, a stream that nobody reads holds its bytes.",
    "With gVisor the clock is the machine's.",
    "Without it, runsc is refused.",
    "Before that, nothing runs.",
    "After a quiet interval a client starts again.",
  ])("is not found: %s", (comment) => {
    expect(subjectFaults(comment)).toEqual([]);
  });
});

describe("words", () => {
  it("calls things that, and lets people be who", () => {
    expect(wordFaults("A server who missed its lease is dead.")).toEqual([expect.stringContaining("server who")]);
    expect(wordFaults("A user who ends the conversation. Who may connect.")).toEqual([]);
  });

  it("counts words of a sentence, not of code, quotations and links", () => {
    expect(wordFaults(`${"word ".repeat(40)}end.`)).toEqual([expect.stringContaining("41 words")]);
    expect(wordFaults(`${"word ".repeat(20)}end. ${"word ".repeat(30)}end.`)).toEqual([]);
    expect(wordFaults(`${"word ".repeat(30)} \`${"code ".repeat(20)}\` "${"name ".repeat(20)}".`)).toEqual([]);
  });

  it("limits the subject of a commit to 90 characters", () => {
    expect(longSubjects(["a".repeat(90), "b".repeat(91)])).toHaveLength(1);
  });
});

describe("prose", () => {
  it("is in comments on lines of their own", () => {
    const source = 'const a = "// no";\n  // One text\n  // of two lines.\n/** Doc. */\n/**\n * Long\n * doc.\n */\n';
    expect(findComments(source).map(({ text }) => text)).toEqual(["One text of two lines.", "Doc.", "Long doc."]);
    expect(findScriptComments('def a():\n    """One text\n    of two lines.\n\n    More."""\n').map(({ text }) => text)).toEqual([
      "One text of two lines.",
    ]);
    expect(findScriptComments("#!/bin/sh\n\n# One text\n# of two lines.\n").map(({ text }) => text)).toEqual(["One text of two lines."]);
  });

  it("is in paragraphs and items of Markdown, not in code, tables and headings", () => {
    const source = "# Title\n\nOne text\nof two lines.\n- An item\n  of two lines.\n- Another.\n\n```sh\necho no\n```\n| a | b |\n";
    expect(findParagraphs(source).map(({ text }) => text)).toEqual(["One text of two lines.", "An item of two lines.", "Another."]);
  });
});

describe("the check", () => {
  const root = mkdtempSync(join(tmpdir(), "aenv-prose-"));
  afterAll(() => rmSync(root, { recursive: true }));

  it("names the file and the line of a planted comment", async () => {
    mkdirSync(join(root, "packages/kit"), { recursive: true });
    writeFileSync(join(root, "packages/kit/a.ts"), "const a = 1;\n\n/** Of the daemon. */\nconst b = 2;\n");
    expect(await checkProse(root)).toEqual([{ file: "packages/kit/a.ts", line: 3, message: expect.stringContaining("'Of'") }]);
  });
});
