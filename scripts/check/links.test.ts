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
  it("is content with links that lead somewhere", async () => {
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

  it("names a file that is not there, an anchor that is not there, and a way out of the repository", async () => {
    const readme = '# Title\n\n[a](gone.md) and\n[b](#gone)\n[c](docs/guide.md#gone "title")\n\n[d]: ../outside.md\n';
    expect(await problemsIn({ "README.md": readme, "docs/guide.md": "# Guide\n" })).toEqual([
      "README.md:3: the link 'gone.md' leads to nothing",
      "README.md:4: 'README.md' has no heading for '#gone'",
      "README.md:5: 'docs/guide.md' has no heading for '#gone'",
      "README.md:7: the link '../outside.md' leads to nothing",
    ]);
  });

  it("names a script that does not exist here or in a package above", async () => {
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
  it("spells headings as the web does", () => {
    const text = "# One, two & `three`!\n## [Linked](x.md) heading ##\n### Same\n### Same\n```\n# not one\n```\n## Über_uns\n";
    expect([...anchors(text)]).toEqual(["one-two--three", "linked-heading", "same", "same-1", "über_uns"]);
  });
});

describe("findLinks", () => {
  it("finds every link, at its line, whatever stands around it", () => {
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
