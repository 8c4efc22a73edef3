import { errorTable } from "@aenv/contract";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { serverSettings } from "../../src/server/settings.ts";
import { commandsPage } from "./commands.ts";
import { errorsPage } from "./errors.ts";
import { findStale, page, table, writePages } from "./page.ts";
import { routesPage } from "./routes.ts";
import { settingsPage } from "./settings.ts";

const operation = { summary: "Do it", tags: ["instances"], "x-roles": ["trainer"] };

describe("a reference page", () => {
  it("is stale when an error code is added that it lacks", async () => {
    using tree = temporaryTree({});
    await writePages(tree.path, [errorsPage()]);
    const planted = { ...errorTable, "planted.code": { status: 418, retryable: false, meaning: "planted" } };
    expect(await findStale(tree.path, [errorsPage()])).toEqual([]);
    expect(await findStale(tree.path, [errorsPage(planted)])).toEqual([
      expect.stringMatching(/^errors\.md:\d+: should be '\| `planted\.code` \| 418 \| no \| planted \|'$/),
    ]);
  });

  it("is stale when a setting is added that it lacks", async () => {
    using tree = temporaryTree({});
    const [first, ...others] = serverSettings();
    await writePages(tree.path, [settingsPage(others)]);
    expect(await findStale(tree.path, [settingsPage()])).toEqual([expect.stringContaining(`\`${first?.key}\``)]);
  });

  it("is stale when a route is added that it lacks", async () => {
    using tree = temporaryTree({});
    await writePages(tree.path, [routesPage({ paths: { "/a": { get: operation } } })]);
    expect(await findStale(tree.path, [routesPage({ paths: { "/a": { get: operation, post: operation } } })])).toEqual([
      expect.stringContaining("| POST | `/a` | trainer | Do it |"),
    ]);
  });

  it("is stale when a command is added that it lacks, or the page is missing", async () => {
    using tree = temporaryTree({});
    const full = await commandsPage();
    expect(await findStale(tree.path, [full])).toEqual(["commands.md:1: the page is missing"]);
    const at = full.text.indexOf("### aenv instance list\n");
    const without = { ...full, text: full.text.slice(0, at) + full.text.slice(full.text.indexOf("\n### ", at) + 1) };
    await writePages(tree.path, [without]);
    expect(await findStale(tree.path, [full])).toEqual([expect.stringContaining("aenv instance list")]);
  });

  it("is stale when it has lines that it should not have", async () => {
    using tree = temporaryTree({ "a.md": `${page("a.md", "A", "b").text}more` });
    expect(await findStale(tree.path, [page("a.md", "A", "b")])).toEqual(["a.md:6: should be ''"]);
  });
});

describe("table", () => {
  it("escapes characters that would end a cell", () => {
    expect(table(["a"], [["b|c\nd"]])).toBe("| a |\n| --- |\n| b\\|c d |");
  });
});
