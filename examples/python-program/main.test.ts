import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describeNeeding, pythonPath, type Tree, temporaryTree } from "@aenv/testing";
import { Environment } from "aenvironment";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";

const launcher = join(dirname(createRequire(import.meta.url).resolve("aenvironment/package.json")), "bin/aenv.js");

/** The example with the Python of this machine's tests, and other values in its config.json. */
function example(change: object = {}): Tree {
  const read = (name: string) => readFileSync(join(import.meta.dirname, name), "utf8");
  const config = { ...JSON.parse(read("config.json")), ...change };
  const runtime = { ...config.runtime, command: [pythonPath, "main.py"] };
  return temporaryTree({ "config.json": { ...config, runtime }, "main.py": read("main.py") });
}

/** The command line of a user in a folder. */
function aenv(cwd: string, ...args: string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const env = { ...process.env, NO_COLOR: "1", XDG_CONFIG_HOME: cwd };
  return promisify(execFile)(process.execPath, [launcher, ...args], { cwd, env, timeout: 100_000 });
}

describeNeeding("python", "the Python program", () => {
  it("does what aenv test checks, all of it but what it does not have", { timeout: 120_000 }, async () => {
    using project = example();
    const { stdout: output } = await aenv(project.path, "test");
    expect(output).toMatch(/\d\d checks passed, none failed, 3 left out/);
    expect(output).toContain('GET /episode says "hear": false');
  });

  it("fails aenv test where it does not, and is told what to answer", { timeout: 120_000 }, async () => {
    using project = example();
    const file = join(project.path, "main.py");
    const broken = readFileSync(file, "utf8")
      .replace(
        'if task is None:\n            raise Refused("task.not_found", 404,',
        'if task is None:\n            raise Refused("task.unknown", 400,',
      )
      .replace("Unknown tool: ", "I have no ")
      .replace('"guesses": [], "hints": 0', '"guesses": [], "at": __import__("time").time_ns(), "hints": 0');
    writeFileSync(file, broken);
    const { code, stdout } = await aenv(project.path, "test").catch((error) => error);
    expect(code).toBe(1);
    expect(stdout).toContain("✗ refuses an unknown task with task.not_found, and goes on with the episode before\n");
    expect(stdout).toContain(
      'POST /task/reset with {"task":"aenv-no-such-task"} must be refused with 404 and the code task.not_found; it was 400',
    );
    expect(stdout).toContain('an unknown tool must be answered with the error -32602 and the message "Unknown tool: NAME"; it was');
    expect(stdout).toContain("✗ begins equally with the same task and seed\n");
  });

  it("is played by a rollout with its oracle, whose trajectories replay to the same digests", { timeout: 120_000 }, async () => {
    using project = example();
    const { stdout: played } = await aenv(project.path, "rollout", ".", "--agent", "oracle", "--digests", "--json");
    expect(JSON.parse(played)).toMatchObject({ scored: 3, reward: { mean: 1 } });
    const { stdout, stderr } = await aenv(project.path, "replay", JSON.parse(played).run);
    expect(stdout).toContain("3 of 3 trajectories equal");
    // Before: the run was published with the program, whose digest was another one then.
    expect(stderr).not.toContain("is not the code that the run was played with");
  });

  describeShared("instance");
  describeShared("shared");
});

function describeShared(isolation: "instance" | "shared"): void {
  const title = isolation === "shared" ? "with instances that share its process" : "with a process for each instance";
  describeNeeding("python", title, () => {
    let platform: Platform;
    let project: Tree;
    let ref: string;
    beforeAll(async () => {
      platform = await startPlatform();
      project = example();
      ref = await publish(platform, project.path, { isolation });
    });
    afterAll(async () => {
      project?.[Symbol.dispose]();
      await platform?.close();
    });

    it("is published with its tools and the number of its tasks", async () => {
      const { metadata } = (await platform.demand("GET", `/env/${ref.replace("@", "/")}`)) as { metadata: { tools: { name: string }[] } };
      expect(metadata).toMatchObject({ taskCount: 3, keepsStateInModules: false });
      expect(metadata.tools.map(({ name }) => name)).toEqual(["guess", "hint"]);
    });

    it("is solved by its oracle in the task and with the seed of its creation, and refuses an unknown task", async () => {
      const { controlUrl, dataUrl } = platform;
      await using env = await Environment.create(ref, { controlUrl, dataUrl, task: "hard", seed: 3 });
      expect((await env.episode.prompt()).messages).toMatchObject([{ content: expect.stringContaining("five letters") }]);
      for (const action of (await env.episode.oracle()) ?? []) if ("tool" in action) await env.callTool(action.tool, action.arguments);
      expect(await env.episode.status()).toEqual({ done: true, reason: "solved" });
      expect(await env.episode.stepReward()).toEqual({ reward: 1, components: {} });
      expect(await env.score()).toEqual({
        reward: 1,
        components: { solved: 1, without_hints: 1 },
        weights: { solved: 0.75, without_hints: 0.25 },
      });
      await expect(Environment.create(ref, { controlUrl, dataUrl, task: "nope" })).rejects.toMatchObject({ code: "task.not_found" });
    });

    it("has an error of its own for an unknown tool", async () => {
      const { controlUrl, dataUrl } = platform;
      await using env = await Environment.create(ref, { controlUrl, dataUrl });
      await expect(env.callTool("gess")).rejects.toMatchObject({ code: "tool.not_found" });
    });

    it("is forked in the middle of an episode, and each copy goes on by itself", async () => {
      const { controlUrl, dataUrl } = platform;
      await using env = await Environment.create(ref, { controlUrl, dataUrl, task: "short", seed: 1 });
      await env.callTool("hint");
      const [one, two] = await env.fork(2);
      const digest = await env.episode.digest();
      expect([await one?.episode.digest(), await two?.episode.digest()]).toEqual([digest, digest]);
      for (const action of (await env.episode.oracle()) ?? []) if ("tool" in action) await one?.callTool(action.tool, action.arguments);
      expect([(await one?.score())?.reward, (await two?.score())?.reward]).toEqual([0.75, 0]);
      expect(await env.episode.digest()).toBe(digest);
      await Promise.all([one?.release(), two?.release()]);
    });
  });
}
