import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { loadDataset } from "../dataset/load.ts";
import { examples } from "../testing/example-rows.ts";
import { openDataset } from "./folder.ts";
import { prepareData } from "./prepare.ts";

const rows = await loadDataset(examples);

describe("the data folder", () => {
  it("has the rows of a file, of a URL or of a task repository", async () => {
    using tree = temporaryTree({});
    const from = (source: string, to: string) => prepareData({ from: source, to: join(tree.path, to), fetch: served });
    const file = join(examples, "rows.jsonl");
    const served = (async () => new Response(readFileSync(file))) as typeof fetch;
    expect(await from(file, "a")).toEqual({
      to: join(tree.path, "a"),
      facts: [
        ["instances", "3"],
        ["repositories", "3"],
        ["images", "3"],
      ],
      warnings: [],
    });
    await from("https://example.com/rows.jsonl?x=1", "b");
    await from(examples, "c");
    for (const name of ["a", "b", "c"]) expect((await openDataset(join(tree.path, name))).rows, name).toEqual(rows);
    expect(readdirSync(join(tree.path, "c/tasks/aenv__ledger-4"))).toContain("Dockerfile");
    expect((await openDataset(join(tree.path, "c"))).info).toEqual({ dataset: examples, split: "test", task_repo: examples });
    expect(readdirSync(tree.path)).toEqual(["a", "b", "c"]);
  });

  it("can be a dataset itself, and is read again when it was prepared again", async () => {
    using tree = temporaryTree({});
    expect((await openDataset(examples)).rows).toEqual(rows);
    const to = join(tree.path, "data");
    await prepareData({ from: examples, to });
    const first = await openDataset(to);
    expect(await openDataset(to)).toBe(first);
    const one = temporaryTree({ "one.json": `[${readFileSync(join(examples, "rows.jsonl"), "utf8").split("\n")[0]}]` });
    await prepareData({ from: join(one.path, "one.json"), to });
    one[Symbol.dispose]();
    expect((await openDataset(to)).rows).toHaveLength(1);
  });

  it("is not written if a row cannot be graded, and does not replace other files", async () => {
    const row = Object.fromEntries(rows[0] ?? []);
    using tree = temporaryTree({
      "parser.json": [{ ...row, log_parser: "parse_log_x" }],
      "type.json": [{ ...row, eval_type: "x" }],
      "twice.json": [row, row],
      "none.json": [],
      "other/file": "",
    });
    const prepare = (name: string, to = "data") => prepareData({ from: join(tree.path, name), to: join(tree.path, to) });
    await expect(prepare("parser.json")).rejects.toThrow("parse_log_x");
    await expect(prepare("type.json")).rejects.toThrow("eval_type of aenv__cronline-3 is 'x'");
    await expect(prepare("twice.json")).rejects.toThrow("two rows of aenv__cronline-3");
    await expect(prepare("none.json")).rejects.toThrow("no rows");
    await expect(prepare("twice.json", "other")).rejects.toThrow("contains other files");
    expect(existsSync(join(tree.path, "data"))).toBe(false);
  });

  it("finds the instance of a datasource by its id or its image", async () => {
    const dataset = await openDataset(examples);
    const [row] = rows;
    for (const name of ["aenv__cronline-3", "swebench/aenv__cronline-3", String(row?.get("image"))])
      expect(dataset.ofDatasource(name)).toEqual(row);
    expect(() => dataset.ofDatasource("x")).toThrow("the datasource 'x'");
    expect(() => dataset.get("x")).toThrow("no instance 'x'");
    expect(dataset.readAsset("aenv__cronline-3", "../../sweb.yaml")).toBeNull();
  });
});
