import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Environment } from "@aenv/sdk";
import { type Files, type Tree, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { openArchive, unpackArchive } from "../bundle/archive.ts";
import { aenv, installedTree, repo } from "../testing/cli.ts";
import { EventProcess, plainEnv } from "../testing/process.ts";

const source = `import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dataPath, defineEnvironment } from "aenvironment";
import { z } from "zod";
import old from "./old.cjs";

const require = createRequire(import.meta.url);
const words = JSON.parse(readFileSync(dataPath("data/words.json"), "utf8"));

export default defineEnvironment({
  setup: () => ({ said: [] as string[] }),
  tools: [
    {
      name: "say",
      description: "Says a word.",
      input: z.object({ at: z.number() }),
      run: async ({ at }, { state }) => {
        const { shout } = await import("./shout.ts");
        state.said.push(words[at]);
        return shout(words[at]) + old.sep + require("node:path").sep;
      },
    },
  ],
  rewards: [{ name: "spoke", score: ({ state }) => state.said.length }],
});
`;
const files: Files = {
  "config.json": { name: "words", version: "1.2.3", buildConfig: { data: ["data"] }, extra: { kept: true } },
  "src/index.ts": source,
  "src/shout.ts": "export const shout = (word: string) => word.toUpperCase();\n",
  "src/old.cjs": 'const path = require("path"); module.exports = { sep: path.sep, here: __dirname };\n',
  "data/words.json": ["tea", "rice"],
  "data/deep/more.txt": "more",
};

async function build(tree: Tree, ...argv: string[]) {
  const { code, stdout, stderr } = await aenv(["build", "--work-dir", tree.path, "--json", ...argv]);
  return { code, stderr, ...(stdout === "" ? {} : JSON.parse(stdout)) };
}

describe("build", { timeout: 60_000 }, () => {
  it("names the archive after its content, and prints the content", async () => {
    using tree = installedTree(files);
    const { code, archive, digest, tools, rewards, files: listed } = await build(tree);
    expect(code).toBe(0);
    expect(archive).toBe(join(tree.path, "dist", `words-1.2.3-${digest.slice("sha256:".length, "sha256:".length + 12)}.tar.gz`));
    const opened = await openArchive(readFileSync(archive));
    expect(`sha256:${opened.digest}`).toBe(digest);
    const paths = opened.entries.map((entry) => entry.path);
    expect(paths).toEqual(
      expect.arrayContaining(["config.json", "data/deep/more.txt", "data/words.json", "main.js", "manifest.json", "package.json"]),
    );
    expect(listed.map((file: { path: string }) => file.path)).toEqual(paths.filter((path) => path !== "manifest.json"));
    expect(tools).toMatchObject([{ name: "say", description: "Says a word.", inputSchema: { required: ["at"] } }]);
    expect(rewards).toMatchObject([{ name: "spoke" }]);
    const config = opened.entries.find((entry) => entry.path === "config.json");
    expect(JSON.parse(Buffer.from(config?.bytes ?? []).toString())).toMatchObject({ name: "words", extra: { kept: true } });
  });

  it("gives the same bytes in another folder, without any path of either folder", async () => {
    using one = installedTree(files);
    using two = temporaryTree();
    cpSync(one.path, join(two.path, "much/deeper"), { recursive: true, filter: (path) => !path.endsWith("node_modules") });
    symlinkSync(join(repo, "node_modules"), join(two.path, "much/deeper/node_modules"));
    const first = await build(one);
    const again = await build(one, "--out", "again");
    const moved = await aenv(["build", "--json"], { cwd: join(two.path, "much/deeper") });
    const bytes = readFileSync(first.archive);
    expect(readFileSync(again.archive).equals(bytes)).toBe(true);
    expect(readFileSync(JSON.parse(moved.stdout).archive).equals(bytes)).toBe(true);
    for (const { path, bytes } of (await openArchive(readFileSync(first.archive))).entries) {
      const text = Buffer.from(bytes).toString();
      for (const place of [one.path, repo.replace(/\/$/, "")]) expect(text.includes(place), `${path} names ${place}`).toBe(false);
    }
  });

  it("builds an archive that runs in any folder, with its data", async () => {
    using tree = installedTree(files);
    using sandbox = temporaryTree();
    await unpackArchive(readFileSync((await build(tree)).archive), sandbox.path);
    await using served = new EventProcess(process.execPath, [join(sandbox.path, "main.js"), "--port", "0"], { cwd: "/", env: plainEnv() });
    const { url, name, version } = await served.next("ready");
    expect([name, version]).toEqual(["words", "1.2.3"]);
    await Environment.use("words", { instanceUrl: String(url) }, async (env) => {
      expect((await env.callTool("say", { at: 1 })).text).toBe("RICE//");
      expect((await env.score()).reward).toBe(1);
    });
    expect(await served.stop("SIGTERM")).toBe(0);
  });

  it("builds an archive whose main.js exports the definition", async () => {
    using tree = installedTree(files);
    using sandbox = temporaryTree();
    await unpackArchive(readFileSync((await build(tree)).archive), sandbox.path);
    const { default: definition } = await import(pathToFileURL(join(sandbox.path, "main.js")).href);
    expect(definition.tools[0].name).toBe("say");
  });

  it("bundles the one-file style, and a project of several files", async () => {
    const register = (name: string) => `import { registerTool } from "aenvironment";\nregisterTool({ name: "${name}" }, () => 1);\n`;
    using tree = installedTree({ "config.json": { name: "two", version: "1" }, "src/a.ts": register("a"), "src/b.ts": register("b") });
    const { code, tools } = await build(tree);
    expect(code).toBe(0);
    expect(tools.map((tool: { name: string }) => tool.name)).toEqual(["a", "b"]);
  });

  it("includes the files, folders and globs of buildConfig.data, and locates one that matches nothing", async () => {
    using tree = installedTree({ ...files, "notes/a.md": "a", "notes/b.txt": "b", "top.txt": "t" });
    const config = (...data: string[]) => ({ "config.json": JSON.stringify({ name: "w", version: "1", buildConfig: { data } }, null, 2) });
    tree.write(config("data", "notes/*.md", "./top.txt"));
    const paths = (await build(tree)).files.map((file: { path: string }) => file.path);
    expect(paths).toEqual(expect.arrayContaining(["data/words.json", "notes/a.md", "top.txt"]));
    expect(paths).not.toContain("notes/b.txt");
    tree.write(config("data", "nix/*.md"));
    const failed = await build(tree);
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain('config.json:7:7 buildConfig.data: no file matches "nix/*.md"');
  });

  it("refuses a symbolic link to data outside the project", async () => {
    using tree = installedTree(files);
    symlinkSync("/etc/hostname", join(tree.path, "data/link"));
    expect((await build(tree)).stderr).toContain("points outside the project");
  });

  it("prints what is missing when the sources load and the bundle does not", async () => {
    using tree = installedTree({ ...files, "config.json": { name: "words", version: "1" } });
    const { code, stderr } = await build(tree);
    expect(code).toBe(1);
    expect(stderr).toContain("the project loads, but its bundle does not");
    expect(stderr).toContain('"buildConfig": { "data": ["data"] }');
  });

  it("prints the line of code that cannot be bundled or loaded", async () => {
    using tree = installedTree(files);
    writeFileSync(join(tree.path, "src/shout.ts"), 'import "not-installed-anywhere";\nexport const shout = 1;\n');
    const missing = await build(tree);
    expect(missing.stderr).toContain("src/shout.ts:1:8 Could not resolve");
    expect(missing.stderr).toContain("npm install not-installed-anywhere");
    writeFileSync(join(tree.path, "src/shout.ts"), "export const shout = String;\n");
    writeFileSync(join(tree.path, "src/old.cjs"), '\nthrow new Error("not today");\n');
    const thrown = await build(tree);
    expect(thrown.code).toBe(1);
    expect(thrown.stderr).toContain("src/old.cjs:2:7 not today");
  });
});
