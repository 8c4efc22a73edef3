import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { tinyBenchmark } from "@aenv/tau2/tiny-benchmark";
import { describeNeeding, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openArchive } from "../bundle/archive.ts";
import { ownTarball } from "../scaffold/own-tarball.ts";
import { repo } from "../testing/cli.ts";
import { plainEnv } from "../testing/process.ts";
import { findBlocks } from "./testing/blocks.ts";
import { cloneTexts } from "./testing/clone-texts.ts";
import { npmConfig, readersEnv, withNeededNode } from "./testing/machine.ts";
import { isLeftOut, notRun } from "./testing/not-run.ts";
import { Reader } from "./testing/reader.ts";
import { readersModel } from "./testing/reader-model.ts";
import { type Registry, registryWith } from "./testing/registry.ts";

/** Creates a project, and makes its packages available to programs next to it. */
const project = "npx aenvironment init my-env --template stateful && npm install --prefix my-env && ln -s my-env/node_modules node_modules";

/** The documents for users of the published package, and the commands that they expect to have been run. */
const texts: Readonly<Record<string, readonly string[]>> = {
  "packages/aenv/README.md": [],
  "docs/guides/command-line.md": [],
  "docs/guides/evaluate.md": [],
  // Its Python is run by interop/python-rl.
  "docs/guides/frameworks.md": [],
  "docs/guides/run-a-benchmark.md": [],
  "docs/guides/run-a-server.md": [project],
  "docs/guides/serve-an-environment.md": [project],
  "docs/guides/train.md": [],
  "docs/guides/use-an-environment.md": [],
  "docs/guides/write-an-environment.md": [],
  "environments/tau2/README.md": ["npx aenvironment server"],
};

/** Folders that a reader already has, by their path in a command. */
const existing = { "./tau2-bench": tinyBenchmark };

const read = (path: string) => readFileSync(join(repo, path), "utf8");

it("runs every document with commands", () => {
  const all = globSync(["README.md", "docs/guides/*.md", "{environments,examples}/*/README.md"], { cwd: repo });
  expect([...Object.keys(texts), ...cloneTexts]).toEqual(expect.arrayContaining(all));
});

it("skips only commands that the documents contain", () => {
  const printed = [...Object.keys(texts), ...cloneTexts].map(read).join("\n");
  expect(notRun.filter(({ text }) => !printed.includes(text))).toEqual([]);
});

describeNeeding("npm-registry", "with the published package, as printed", () => {
  let tree: Tree;
  let registry: Registry;
  let env: NodeJS.ProcessEnv;

  beforeAll(async () => {
    const tarball = await ownTarball();
    if (tarball === null) throw new Error("this is not a clone");
    const manifest = (await openArchive(tarball.bytes)).entries.find(({ path }) => path === "package/package.json");
    registry = await registryWith(tarball.bytes, JSON.parse(Buffer.from(manifest?.bytes ?? []).toString()), npmConfig("registry"));
    tree = temporaryTree();
    const home = join(tree.path, "home");
    env = { ...withNeededNode(home, readersEnv(home, plainEnv())), npm_config_registry: registry.url };
  }, 180_000);
  afterAll(async () => {
    await registry?.[Symbol.asyncDispose]();
    tree?.[Symbol.dispose]();
  });

  it.each(Object.entries(texts))("%s: every command and snippet works", { timeout: 600_000 }, async (path, before) => {
    using folder = temporaryTree();
    await using model = await readersModel();
    const own = { ...env, AENV_HOME: join(folder.path, ".aenv"), OPENAI_BASE_URL: model.baseUrl };
    await using reader = await Reader.open({ cwd: folder.path, env: own, isLeftOut, existing, modelUrl: model.baseUrl });
    for (const command of before) await reader.command(command);
    for (const block of findBlocks(read(path))) {
      try {
        await reader.read(block);
      } catch (cause) {
        throw new Error(`${path}:${block.line}: ${(cause as Error).message}`);
      }
    }
  });
});
