import { execFile, execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Tree, temporaryTree } from "@aenv/testing";
import { Environment } from "aenvironment";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tinyBenchmark } from "../fixtures/tiny-benchmark.ts";

const project = fileURLToPath(new URL("../..", import.meta.url));
const launcher = join(fileURLToPath(import.meta.resolve("aenvironment/package.json")), "../bin/aenv.js");
const files = (folder: string) => readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const contents = (folder: string) =>
  Object.fromEntries(
    files(folder).map(({ parentPath, name }) => [
      join(parentPath, name).slice(folder.length + 1),
      readFileSync(join(parentPath, name), "utf8"),
    ]),
  );

// The steps of a user with a copy of the benchmark; each test builds on the previous ones.
describe("from a copy of the benchmark to episodes with its prompts and schemas", { timeout: 60_000 }, () => {
  let tree: Tree;
  let platform: Platform;
  let web: Server;
  let archiveUrl: string;
  let checkout: string;

  const aenvWith = (env: Record<string, string>, ...argv: string[]) =>
    promisify(execFile)(process.execPath, [launcher, ...argv], {
      cwd: tree.path,
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        HOME: tree.path,
        AENV_HOME: platform.home,
        NO_COLOR: "1",
        ...env,
      },
    });
  const aenv = (...argv: string[]) => aenvWith({}, ...argv);
  const open = (name: string) =>
    Environment.create(name, { controlUrl: platform.controlUrl, dataUrl: platform.dataUrl, variables: { TAU2_DOMAIN: "mock" } });
  const wish = async (env: Environment) => (await env.listTools()).find(({ name }) => name.endsWith("/create_task"));

  beforeAll(async () => {
    tree = temporaryTree(Object.fromEntries(Object.entries(tinyBenchmark).map(([path, text]) => [`tiny-benchmark-1.0/${path}`, text])));
    checkout = join(tree.path, "tiny-benchmark-1.0");
    execFileSync("tar", ["-czf", join(tree.path, "tiny.tar.gz"), "-C", tree.path, "tiny-benchmark-1.0"]);
    web = createServer((_, response) => response.end(readFileSync(join(tree.path, "tiny.tar.gz"))));
    await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
    archiveUrl = `http://127.0.0.1:${(web.address() as AddressInfo).port}/tiny.tar.gz`;
    platform = await startPlatform();
  });
  afterAll(async () => {
    await platform?.close();
    web?.closeAllConnections();
    web?.close();
    tree?.[Symbol.dispose]();
  });

  it("is published without data, and its error says how to prepare it", async () => {
    const ref = await publish(platform, project, { isolation: "instance", version: "0.0.1" });
    const record = await platform.demand("GET", "/env/tau2/0.0.1");
    expect(record).toMatchObject({
      metadata: { tools: expect.arrayContaining([expect.objectContaining({ name: "done" })]), taskCount: null },
    });
    await expect(open(ref)).rejects.toThrow(/<data>\/tau2 does not exist; prepare it with: aenv bench data tau2 --from/);
  });

  it("reads a directory into the default data directory, and prints what it found", async () => {
    const { stdout } = await aenv("bench", "data", "tau2", "--from", "tiny-benchmark-1.0");
    expect(stdout).toContain(`tau2's data is in ${platform.home}/data/tau2`);
    expect(stdout).toMatch(/mock +│ 7 +│ 7 +│ 6 differ/);
    expect(stdout).toContain("Different from revision a2c0247");
    expect(stdout).toMatch(/mock beyond: src\/tau2\/domains\/mock\/tools\.py:\d+: the type Unheard/);
    expect(stdout).toContain("aenv push --work-dir tau2");
  });

  it("reads an archive from a URL into the same files", async () => {
    const { stdout } = await aenv("bench", "data", "tau2", "--from", archiveUrl, "--to", "other", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ name: "tau2", to: join(tree.path, "other"), domains: ["mock"], ownPrompts: ["judge"] });
    expect(contents(join(tree.path, "other"))).toEqual(contents(join(platform.home, "data/tau2")));
    expect(readdirSync(join(platform.home, "data"))).toEqual(["tau2"]);
  });

  it("fails with --strict if the revision is not the known one", async () => {
    const strict = aenv("bench", "data", "tau2", "--from", checkout, "--to", "strict", "--strict");
    await expect(strict).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("is not revision a2c0247") });
    expect(readdirSync(tree.path)).not.toContain("strict");
  });

  it("is bundled to the same bytes with and without data", async () => {
    const digests = ["nowhere", `${platform.home}/data`].map(async (data) => {
      const { stdout } = await aenvWith({ AENV_DATA_DIR: data }, "build", "--work-dir", "tau2", "--out", join(tree.path, "out"), "--json");
      return JSON.parse(stdout).digest;
    });
    const [without, withData] = await Promise.all(digests);
    expect(withData).toBe(without);
  });

  it.each(["instance", "shared"] as const)(
    "shows the prepared prompts and schemas to agents of %s processes, without further settings",
    async (isolation) => {
      const ref = await publish(platform, project, { isolation, version: "0.0.2" });
      await using env = await open(ref);
      expect(await wish(env)).toMatchObject({
        description: "Note a reader's wish.",
        inputSchema: { properties: { user_id: { description: "Whose wish it is." }, title: { description: "The book's title." } } },
      });
      expect(await env.callFunction("tau2_get_system_prompt")).toBe(
        "<instructions>\nServe the ticket, then call done.\n</instructions>\n<policy>\nBe kind, alone.\n\n</policy>\n<ticket>\nA book, please.\n</ticket>",
      );
      const made = await env.callTool("create_task", { user_id: "r_1", title: "Walden" });
      expect(made.json()).toMatchObject({ observation: expect.stringContaining("Walden"), done: false });
    },
  );

  it("shows them in `aenv run` by the benchmark's name", async () => {
    const child = execFile(process.execPath, [launcher, "run", "--work-dir", "tau2", "--port", "0", "--json"], {
      cwd: tree.path,
      env: { PATH: process.env.PATH, HOME: tree.path, AENV_HOME: platform.home, TAU2_DOMAIN: "mock" },
    });
    try {
      const ready = await new Promise<{ url: string }>((resolve, reject) => {
        child.stdout?.on("data", (text: string) => /"event":"ready"/.test(text) && resolve(JSON.parse(text.split("\n")[0] as string)));
        child.once("close", (code) => reject(new Error(`it ended with ${code}`)));
      });
      await using env = new Environment("tau2", { instanceUrl: ready.url });
      expect(await wish(env)).toMatchObject({ description: "Note a reader's wish." });
    } finally {
      child.kill("SIGTERM");
      if (child.exitCode === null) await new Promise((resolve) => child.once("close", resolve));
    }
  });
});
