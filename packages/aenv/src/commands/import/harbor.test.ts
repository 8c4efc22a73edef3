import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Tree, temporaryTree } from "@aenv/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { aenv, repo } from "../../testing/cli.ts";

let tree: Tree;
beforeEach(() => {
  tree = temporaryTree({ "empty/x": "", "taken/file": "" });
});
afterEach(() => tree[Symbol.dispose]());

const examples = join(repo, "environments/terminal-bench/examples");
const run = (...argv: string[]) => aenv(["import", "harbor", ...argv], { cwd: tree.path });

it("a folder of tasks becomes a project with the tasks and the code that plays them", async () => {
  const { code, stdout } = await run(join(examples, "terminal-bench-1"), "--version", "2.1.0", "--json");
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { name: "terminal-bench-1", version: "2.1.0", facts: { tasks: "4" } }]);
  const project = join(tree.path, "terminal-bench-1");
  expect(readdirSync(project)).toEqual(["README.md", "config.json", "package.json", "player", "tasks"]);
  const config = JSON.parse(readFileSync(join(project, "config.json"), "utf8"));
  expect(config).toMatchObject({ main: "player/environment.js", buildConfig: { data: ["tasks"] }, deployConfig: { isolation: "shared" } });
  expect(readFileSync(join(project, "README.md"), "utf8")).toContain("aenv bench images terminal-bench --from tasks --build");
  const built = await aenv(["build", "--work-dir", project, "--json"], { cwd: tree.path });
  expect([built.code, built.code === 0 ? "" : built.stderr]).toEqual([0, ""]);
}, 60_000);

it("one dataset of a registry file is imported, and its images are the next step", async () => {
  const registry = join(examples, "harbor/registry.json");
  expect(await run(registry)).toMatchObject({ code: 1, stderr: expect.stringContaining("has 2 datasets; name one with --domain") });
  const { code, stdout } = await run(registry, "--domain", "aenv-examples@0.9", "--name", "old");
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/tasks: 1[\s\S]*aenv bench images terminal-bench --from \S+old\/tasks --build/),
  ]);
}, 60_000);

it("what cannot be imported is named, and nothing is written", async () => {
  expect(await run("./empty")).toMatchObject({ code: 1, stderr: expect.stringContaining("has no tasks") });
  expect(existsSync(join(tree.path, "empty-env"))).toBe(false);
  expect(await run("./missing")).toMatchObject({ stderr: expect.stringContaining("there is no") });
  expect(await run(examples, "--name", "taken")).toMatchObject({ code: 1, stderr: expect.stringContaining("is not empty") });
  expect(await run(join(examples, "harbor"), "--name", "Bad Name")).toMatchObject({ stderr: expect.stringContaining("name") });
}, 60_000);
