import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Tree, temporaryTree } from "@aenv/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { watchProject } from "./watch.ts";

/** Resolves with the next settled change. */
function watching(tree: Tree): () => Promise<readonly string[]> {
  const seen: (readonly string[])[] = [];
  let wake: (() => void) | undefined;
  const watch = watchProject(tree.path, (files) => {
    seen.push(files);
    wake?.();
  });
  onTestFinished(() => watch.close());
  return async () => {
    while (seen.length === 0) await new Promise<void>((resolve) => (wake = resolve));
    return seen.shift() as readonly string[];
  };
}

describe("watchProject", () => {
  it("reports a saved file, also when an editor saves by renaming", async () => {
    using tree = temporaryTree({ "src/a.ts": "1" });
    const next = watching(tree);
    tree.write({ "src/a.ts": "2" });
    expect(await next()).toEqual(["src/a.ts"]);
    tree.write({ "src/a.ts.new": "3" });
    renameSync(join(tree.path, "src/a.ts.new"), join(tree.path, "src/a.ts"));
    expect(await next()).toContain("src/a.ts");
  });

  it("reports deleted files and new folders", async () => {
    using tree = temporaryTree({ "src/a.ts": "1", "src/b.ts": "1" });
    const next = watching(tree);
    rmSync(join(tree.path, "src/b.ts"));
    expect(await next()).toEqual(["src/b.ts"]);
    mkdirSync(join(tree.path, "src/deep/er"), { recursive: true });
    writeFileSync(join(tree.path, "src/deep/er/c.ts"), "1");
    expect(await next()).toContain("src/deep");
    tree.write({ "src/deep/er/c.ts": "2" });
    expect(await next()).toEqual(["src/deep/er/c.ts"]);
  });

  it("reports files that are saved together as one change", async () => {
    using tree = temporaryTree({ "src/a.ts": "1", "src/b.ts": "1" });
    const next = watching(tree);
    tree.write({ "src/a.ts": "2", "src/b.ts": "2" });
    expect(await next()).toEqual(["src/a.ts", "src/b.ts"]);
  });

  it("ignores installed, built and hidden files and those of editors", async () => {
    using tree = temporaryTree({ "src/a.ts": "1", "node_modules/x/i.js": "1", "dist/x": "1", ".git/x": "1" });
    const next = watching(tree);
    tree.write({ "node_modules/x/i.js": "2", "dist/x": "2", ".git/x": "2", "src/.a.ts.swp": "x", "src/a.ts~": "x", "run.log": "x" });
    tree.write({ "src/a.ts": "2" });
    expect(await next()).toEqual(["src/a.ts"]);
  });

  it("ignores the runs of rollouts in the project's folder, and only those", async () => {
    using tree = temporaryTree({ "src/runs/a.ts": "1" });
    const next = watching(tree);
    tree.write({ "runs/today/run.json": "{}", "runs/today/trajectories.jsonl": "{}" });
    tree.write({ "src/runs/a.ts": "2" });
    expect(await next()).toEqual(["src/runs/a.ts"]);
  });

  it("ignores runs that are kept in another folder of the project, from their first file to their last", async () => {
    using tree = temporaryTree({ "src/a.ts": "1" });
    const next = watching(tree);
    tree.write({ "experiments/today/lock": "1", "experiments/today/run.json": "{}", "experiments/today/trajectories.jsonl": "{}" });
    tree.write({ "src/a.ts": "2" });
    expect(await next()).toEqual(["src/a.ts"]);
    tree.write({ "experiments/today/summary.json": "{}" });
    rmSync(join(tree.path, "experiments/today/lock"));
    tree.write({ "src/a.ts": "3" });
    expect(await next()).toEqual(["src/a.ts"]);
  });
});
