import { execFileSync } from "node:child_process";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { repo } from "../testing/cli.ts";
import { plainEnv } from "../testing/process.ts";
import { findBlocks } from "./testing/blocks.ts";
import { cloneTexts } from "./testing/clone-texts.ts";
import { readersEnv } from "./testing/machine.ts";
import { isLeftOut } from "./testing/not-run.ts";
import { Reader } from "./testing/reader.ts";

// With the machine's Node, which may be 20: the clone installs the one that it needs.
describeNeeding("npm-registry", "in a fresh clone, as printed", () => {
  let tree: Tree;
  let clone: string;
  let env: NodeJS.ProcessEnv;
  let installed: string;
  const git = (...args: string[]) => execFileSync("git", args, { cwd: clone, encoding: "utf8" });

  beforeAll(async () => {
    tree = temporaryTree();
    clone = join(tree.path, "clone");
    // The files of the working tree, committed or not.
    const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: repo, encoding: "utf8" });
    for (const file of files.trim().split("\n")) cpSync(join(repo, file), join(clone, file), { force: true });
    git("init", "--quiet");
    git("add", "--all");
    env = { ...readersEnv(join(tree.path, "home"), plainEnv()), AENV_HOME: join(tree.path, ".aenv") };
    await using reader = await open();
    installed = await reader.command("npm install");
  }, 300_000);
  // Tens of thousands of files.
  afterAll(() => tree?.[Symbol.dispose](), 180_000);

  it("installs without a warning, and changes no file", () => {
    expect(installed).toMatch(/^\nadded \d+ packages in \w+\n$/);
    expect(git("diff", "--name-only")).toBe("");
  });

  it.each(cloneTexts)("%s: every command and snippet works", { timeout: 300_000 }, async (path) => {
    await using reader = await open();
    for (const block of findBlocks(readFileSync(join(clone, path), "utf8"))) {
      try {
        await reader.read(block);
      } catch (cause) {
        throw new Error(`${path}:${block.line}: ${(cause as Error).message}`);
      }
    }
  });

  it("the quickstart's next steps create a project outside the clone that installs, type-checks, passes its tests, runs and creates another", {
    timeout: 600_000,
  }, async () => {
    await using reader = await open();
    const advice = commandsIn(await reader.command("npm run quickstart"));
    expect(advice.map((command) => command.split(" ").slice(0, 3).join(" "))).toEqual([
      "npx aenvironment run",
      "npx aenvironment rollout",
      "npx aenvironment init",
    ]);
    let next: string[] = [];
    for (const command of advice) next = commandsIn(await reader.command(command));
    expect(next).toEqual(["cd ../my-env && npm install", "npx aenvironment rollout .", "npx aenvironment run"]);
    for (const command of [...next, "npm run typecheck", "npm test"]) await reader.command(command);
    expect(await reader.command("npx aenvironment call add n=3")).toContain("3");
    expect(await reader.command("pwd")).toBe(`${join(tree.path, "my-env")}\n`);

    // What is served keeps its state when a rollout writes its run into the project.
    await reader.command("npx aenvironment rollout . --run second");
    expect(await reader.command("npx aenvironment call add n=1")).toContain("4");

    const inner = commandsIn(await reader.command("npx aenvironment init inner --work-dir .."));
    expect(inner.slice(0, 2)).toEqual(["cd ../inner && npm install", "npx aenvironment rollout ."]);
    for (const command of inner.slice(0, 2)) await reader.command(command);
  });

  function open(): Promise<Reader> {
    return Reader.open({ cwd: clone, env, isLeftOut });
  }
});

/** The lines of an output that are commands. */
function commandsIn(output: string): string[] {
  return [...output.matchAll(/^ +((?:npx|npm|cd) .+)$/gm)].map((found) => found[1] as string);
}
