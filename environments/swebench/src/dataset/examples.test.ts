import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { getLogParser } from "../parsers/registry.ts";
import { byInstance, readPredictions } from "../runs/predictions.ts";
import { checkPredictions, goldPredictions } from "../runs/select.ts";
import { makeSpec } from "../spec/spec.ts";
import { exampleRows, examples } from "../testing/example-rows.ts";
import { loadDataset } from "./load.ts";
import { columnText, instanceIdOf } from "./row.ts";
import { checkTaskRepo } from "./task-repo/check.ts";

const rows = await loadDataset(examples);

describe("the dataset in examples", () => {
  it("is a complete task repository", () => {
    expect(checkTaskRepo(examples)).toEqual([]);
    expect(rows.map(instanceIdOf)).toEqual(["aenv__cronline-3", "aenv__ledger-4", "aenv__routes-3"]);
    for (const row of rows) expect(() => getLogParser(makeSpec(row).logParser)).not.toThrow();
  });

  it("has the same rows in rows.jsonl", async () => {
    const file = join(examples, "rows.jsonl");
    expect(readFileSync(file, "utf8"), "run node environments/swebench/src/testing/write-example-rows.ts").toBe(await exampleRows());
    expect(await loadDataset(file)).toEqual(rows);
  });

  it.each(rows.map((row) => [instanceIdOf(row), row] as const))(
    "has a history of %s that ends at the base commit, and patches that apply to it",
    (id, row) => {
      using tree = temporaryTree({});
      const git = (input: string | null, ...args: readonly string[]) =>
        execFileSync("git", args, { cwd: tree.path, encoding: "utf8", input: input ?? "" }).trim();
      git(null, "init", "--quiet", "--initial-branch=main");
      git(readFileSync(join(examples, "tasks", id, "repository.fi"), "utf8"), "fast-import", "--quiet", "--done");
      git(null, "reset", "--quiet", "--hard", "main");
      expect(git(null, "rev-parse", "HEAD")).toBe(columnText(row, "base_commit"));
      expect(git(null, "rev-list", "--count", "--all")).toBe("3");
      for (const column of ["patch", "test_patch"]) git(columnText(row, column), "apply", "-");
      const changed = git(null, "diff", "--name-only").split("\n");
      for (const file of changed.filter((path) => path.startsWith("test"))) expect(columnText(row, "eval_script")).toContain(` ${file}`);
      expect(columnText(row, "eval_script")).toContain(columnText(row, "test_patch"));
      expect(readFileSync(join(examples, "tasks", id, "Dockerfile"), "utf8")).toContain(columnText(row, "base_commit"));
    },
  );

  it("has predictions for its instances, and gold ones that are its own solutions", () => {
    const folder = join(examples, "predictions");
    for (const file of readdirSync(folder).filter((name) => name.endsWith(".jsonl"))) {
      const predictions = readPredictions(readFileSync(join(folder, file), "utf8"), "jsonl");
      checkPredictions(byInstance(predictions), rows);
      if (file !== "gold.jsonl") continue;
      const patches = (list: typeof predictions) => new Map(list.map(({ instanceId, all }) => [instanceId, all.get("model_patch")]));
      expect(patches(predictions)).toEqual(patches(goldPredictions(rows)));
    }
  });
});
