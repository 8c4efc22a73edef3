import { temporaryTree } from "@aenv/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anchors, checkLinks, findLinks } from "./links.ts";
import { formatProblem, lineAt } from "./problem.ts";

async function problemsIn(files: Record<string, unknown>): Promise<string[]> {
  using tree = temporaryTree({ "package.json": { scripts: { test: "x", check: "y" } }, ...files });
  return (await checkLinks(tree.path)).map(formatProblem);
}

describe("checkLinks", () => {
  it("accepts links with existing targets", async () => {
    const readme = [
      "# The house",
      "[guide](docs/guide.md), [part](docs/guide.md#second-part), [here](#the-house), [folder](docs), [web](https://example.com/x#y)",
      "[label]: docs/guide.md",
      "`[code](nowhere.md)`",
      "```",
      "[fence](nowhere.md)",
      "```",
    ];
    expect(await problemsIn({ "README.md": readme.join("\n"), "docs/guide.md": "## Second part\n[up](../README.md#the-house)\n" })).toEqual(
      [],
    );
  });

  it("reports a missing file, a missing anchor, and a path outside the repository", async () => {
    const readme = '# Title\n\n[a](gone.md) and\n[b](#gone)\n[c](docs/guide.md#gone "title")\n\n[d]: ../outside.md\n';
    expect(await problemsIn({ "README.md": readme, "docs/guide.md": "# Guide\n" })).toEqual([
      "README.md:3: the target of the link 'gone.md' does not exist",
      "README.md:4: 'README.md' has no heading for '#gone'",
      "README.md:5: 'docs/guide.md' has no heading for '#gone'",
      "README.md:7: the target of the link '../outside.md' does not exist",
    ]);
  });

  it("reports a script that does not exist in this package or one above", async () => {
    const files = {
      "README.md": "Run `npm test`, `npm run -s check` or\n`npm run dance`.\n",
      "packages/a/package.json": { scripts: { sing: "x" } },
      "packages/a/README.md": "`npm run sing`, `npm test`, `npm run dance`\n",
    };
    expect(await problemsIn(files)).toEqual([
      "README.md:2: no npm script is called 'dance'",
      "packages/a/README.md:1: no npm script is called 'dance'",
    ]);
  });
});

describe("anchors", () => {
  it("writes headings as GitHub does", () => {
    const text = "# One, two & `three`!\n## [Linked](x.md) heading ##\n### Same\n### Same\n```\n# not one\n```\n## Über_uns\n";
    expect([...anchors(text)]).toEqual(["one-two--three", "linked-heading", "same", "same-1", "über_uns"]);
  });
});

describe("findLinks", () => {
  it("finds every link with its line, in any surrounding text", () => {
    const name = fc.stringMatching(/^[a-z][a-z/.#-]{0,10}$/);
    const noise = fc.constantFrom("", "text", "`code`", "(in parentheses)", "[brackets]", "```\nfence](no)\n```", "* item");
    fc.assert(
      fc.property(fc.array(fc.tuple(noise, name)), (parts) => {
        const text = parts.map(([before, target]) => `${before}\n\n[x](${target})\n\n`).join("");
        const found = findLinks(text);
        expect(found.map((link) => link.target)).toEqual(parts.map(([, target]) => target));
        const lines = text.split("\n");
        for (const { target, at } of found) expect(lines[lineAt(text, at) - 1]).toContain(`(${target})`);
      }),
    );
  });
});
