import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { tinyBenchmark } from "@aenv/tau2/tiny-benchmark";
import { describeNeeding, type Files, type Tree, tau2Path, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openArchive } from "../bundle/archive.ts";
import { ownTarball } from "../scaffold/own-tarball.ts";
import { repo } from "../testing/cli.ts";
import { plainEnv } from "../testing/process.ts";
import { type Block, findBlocks } from "./testing/blocks.ts";
import { cloneTexts } from "./testing/clone-texts.ts";
import { npmConfig, readersEnv, withNeededNode } from "./testing/machine.ts";
import { isLeftOut, notRun } from "./testing/not-run.ts";
import { Reader, type ReaderOptions } from "./testing/reader.ts";
import { readersModel } from "./testing/reader-model.ts";
import { type Registry, registryWith } from "./testing/registry.ts";
import { withRememberedNpm } from "./testing/remembered-npm.ts";

/** Creates a project, and makes its packages available to programs next to it. */
const project = "npx aenvironment init my-env && npm install --prefix my-env && ln -s my-env/node_modules node_modules";

/** Publishes it on a server. */
const published = [project, "npx aenvironment server", "npx aenvironment push --work-dir my-env"];

/** The document whose commands are all run by npm and npx themselves. */
const withNpm = "packages/aenv/README.md";

/** The documents for users of the published package, and the commands that they expect to have been run. */
const texts: Readonly<Record<string, readonly string[]>> = {
  [withNpm]: [],
  "docs/guides/a2a.md": [],
  "docs/guides/agents.md": ["npm install aenvironment zod"],
  "docs/guides/backups.md": [],
  "docs/guides/capacity.md": [],
  "docs/guides/command-line.md": [],
  // Its code needs an instance whose id is printed; platform-tests run such commands.
  "docs/guides/commands-and-ports.md": [],
  "docs/guides/compose.md": [],
  "docs/guides/copies-and-snapshots.md": [],
  // Its commands need root, a daemon or a cluster.
  "docs/guides/engines.md": [],
  "docs/guides/evaluate.md": [],
  // Its Python is run by interop/python-rl.
  "docs/guides/frameworks.md": [],
  // Its commands need a cluster; interop/helm installs, upgrades and uninstalls the chart.
  "docs/guides/kubernetes.md": [],
  "docs/guides/images.md": [],
  "docs/guides/limits.md": [],
  "docs/guides/monitoring.md": ["npx aenvironment server"],
  // Its code needs a mounted server; commands/mount and interop/mount have some.
  "docs/guides/mount.md": [],
  "docs/guides/network-and-secrets.md": [],
  // Its commands need a program: examples/python-program has a test that runs them.
  "docs/guides/programs.md": [],
  "docs/guides/rewards.md": ["npm install aenvironment zod"],
  "docs/guides/roles.md": [],
  "docs/guides/rollout-service.md": published,
  "docs/guides/run-a-benchmark.md": [],
  "docs/guides/run-a-server.md": [],
  "docs/guides/sandboxes.md": [],
  "docs/guides/serve-an-environment.md": [project],
  "docs/guides/services.md": published,
  // Its command needs a Redis.
  "docs/guides/several-servers.md": [],
  "docs/guides/threats.md": [],
  "docs/guides/tokens-and-access.md": ["npx aenvironment server"],
  // Its Python too.
  "docs/guides/train.md": [],
  "docs/guides/use-an-environment.md": [],
  "docs/guides/write-an-environment.md": [],
  "environments/mini-terminal/README.md": ["npm install aenvironment", "npx aenvironment server"],
  // Its code needs a sandbox and rows of the benchmark.
  "environments/swebench/README.md": [],
  "environments/tau2/README.md": ["npx aenvironment server"],
  // Its commands need Python: its own test runs them.
  "examples/python-program/README.md": [],
};

/** Those with commands that need the data of tau2, which is not part of the project: their blocks about tau2 are run with it. */
const withTau2: Readonly<Record<string, readonly string[]>> = {
  "docs/guides/evaluate.md": [],
  "docs/guides/run-a-benchmark.md": ["npm install aenvironment"],
  "environments/tau2/README.md": [
    "npm install aenvironment",
    "npx aenvironment server",
    "npx aenvironment bench data tau2 --from ./tau2-bench",
    "npx aenvironment push --work-dir tau2",
  ],
};

/** The domain airline in the layout of a checkout; its tools have descriptions of our own. */
function airlineBenchmark(): Files {
  const data = join(tau2Path, "data");
  const copied = globSync(["airline/*", "user_simulator/*"], { cwd: data }).map((path) => {
    const place = path.startsWith("airline/") ? `domains/${path}` : path;
    return [`data/tau2/${place}`, readFileSync(join(data, path), "utf8")];
  });
  const tools = { "src/tau2/domains/airline/tools.py": "class AirlineTools:\n    pass\n" };
  return { ...tinyBenchmark, ...tools, ...Object.fromEntries(copied) };
}

type DocumentOptions = Pick<ReaderOptions, "isLeftOut" | "existing">;

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
  let npmsEnv: NodeJS.ProcessEnv;
  let env: NodeJS.ProcessEnv;

  beforeAll(async () => {
    const tarball = await ownTarball();
    if (tarball === null) throw new Error("this is not a clone");
    const manifest = (await openArchive(tarball.bytes)).entries.find(({ path }) => path === "package/package.json");
    registry = await registryWith(tarball.bytes, JSON.parse(Buffer.from(manifest?.bytes ?? []).toString()), npmConfig("registry"));
    tree = temporaryTree();
    const home = join(tree.path, "home");
    npmsEnv = { ...withNeededNode(home, readersEnv(home, plainEnv())), npm_config_registry: registry.url };
    env = withRememberedNpm(home, npmsEnv);
  }, 180_000);
  afterAll(async () => {
    await registry?.[Symbol.asyncDispose]();
    // Tens of thousands of files.
    tree?.[Symbol.dispose]();
  }, 180_000);

  /** Runs the blocks of a document, after the commands that it expects to have been run. */
  async function runBlocks(path: string, before: readonly string[], blocks: readonly Block[], options: DocumentOptions): Promise<void> {
    using folder = temporaryTree();
    await using model = await readersModel();
    const own = { ...(path === withNpm ? npmsEnv : env), AENV_HOME: join(folder.path, ".aenv"), OPENAI_BASE_URL: model.baseUrl };
    await using reader = await Reader.open({ cwd: folder.path, env: own, modelUrl: model.baseUrl, ...options });
    for (const command of before) await reader.command(command);
    for (const block of blocks) {
      try {
        await reader.read(block);
      } catch (cause) {
        throw new Error(`${path}:${block.line}: ${(cause as Error).message}`);
      }
    }
  }

  it.each(Object.entries(texts))("%s: every command and snippet works", { timeout: 600_000 }, (path, before) =>
    runBlocks(path, before, findBlocks(read(path)), { isLeftOut, existing: { "./tau2-bench": tinyBenchmark } }),
  );

  describeNeeding("tau2-data", "with the data of tau2", () => {
    it.each(Object.entries(withTau2))("%s: every command and snippet with it works", { timeout: 600_000 }, (path, before) => {
      const blocks = findBlocks(read(path)).filter(({ code }) => code.includes("tau2"));
      const has = (printed: string) => isLeftOut(printed, "tau2-data");
      return runBlocks(path, before, blocks, { isLeftOut: has, existing: { "./tau2-bench": airlineBenchmark() } });
    });
  });
});
