import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { examplesFolder } from "../fixtures/examples.ts";
import { manifestHash, parseManifest } from "./manifest.ts";
import { openDataset } from "./open.ts";
import { findDataset, parseRegistry } from "./registry.ts";
import { selectTasks } from "./select.ts";

const harbor = join(examplesFolder, "harbor");

describe("a dataset", () => {
  it("is a folder of tasks, sorted by name; other folders are skipped", async () => {
    using tree = temporaryTree({ "b/task.yaml": "", "a/task.toml": "", "c/README.md": "" });
    expect((await openDataset(tree.path)).tasks.map(({ name }) => name)).toEqual(["a", "b"]);
  });

  it("is one task without a dataset's name", async () => {
    expect(await openDataset(join(harbor, "users"))).toMatchObject({ name: null, tasks: [{ name: "users" }] });
  });

  it("is an entry of a registry file; tasks in repositories are named as missing", async () => {
    const registry = join(harbor, "registry.json");
    const { tasks, missing } = await openDataset(registry, "aenv-examples");
    expect(tasks.map(({ folder }) => folder)).toEqual([join(harbor, "hello-file"), join(harbor, "workdir")]);
    expect(missing).toMatchObject([{ name: "far", reason: expect.stringContaining("https://git.example/bench.git") }]);
    await expect(openDataset(registry)).rejects.toThrow(
      "name one with --domain or TERMINAL_BENCH_DATASET: aenv-examples@1.0, aenv-examples@0.9",
    );
    expect(() => findDataset(parseRegistry(readFileSync(registry, "utf8")), "aenv-examples@2")).toThrow("it has: 1.0, 0.9");
  });

  it("is a manifest whose digests are the content of the examples", async () => {
    const { name, tasks, missing } = await openDataset(join(harbor, "dataset.toml"));
    expect({ name, missing }).toEqual({ name: "aenv-examples/all", missing: [] });
    expect(tasks).toHaveLength(16);
    expect(manifestHash(parseManifest(readFileSync(join(harbor, "dataset.toml"), "utf8")))).toMatch(/^[0-9a-f]{64}$/);
  });

  it("does not use a task whose content is not the pinned one", async () => {
    using tree = temporaryTree();
    cpSync(join(harbor, "users"), join(tree.path, "users"), { recursive: true });
    cpSync(join(harbor, "dataset.toml"), join(tree.path, "dataset.toml"));
    writeFileSync(join(tree.path, "users/tests/test.sh"), "echo 1 > /logs/verifier/reward.txt\n");
    const { tasks, missing } = await openDataset(tree.path);
    expect(tasks).toEqual([]);
    expect(missing.find(({ name }) => name === "aenv-examples/users")?.reason).toMatch(/^its content is sha256:.*, not sha256:/);
  });
});

describe("a selection", () => {
  const tasks = ["a/one", "a/two", "b/one"].map((name) => ({ name }));

  it("includes, excludes and then limits", () => {
    expect(selectTasks(tasks, { include: ["*one"], exclude: ["b*"] })).toEqual([{ name: "a/one" }]);
    expect(selectTasks(tasks, { limit: 2 })).toHaveLength(2);
  });

  it("without a match is an error that names the tasks", () => {
    expect(() => selectTasks(tasks, { include: ["a/*", "x"] })).toThrow("no task matches 'x'; there are: a/one, a/two, b/one");
  });
});
