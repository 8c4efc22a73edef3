import { readTrajectories } from "@aenv/rollout";
import { type Tree, temporaryTree, timeless } from "@aenv/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { aenv, installedTree } from "../testing/cli.ts";

/** The second tool answers something else each time. */
const dice = {
  "config.json": { name: "dice", version: "1.0.0", main: "index.ts" },
  "index.ts": `import { defineEnvironment } from "aenvironment";
let thrown = 0;
export default defineEnvironment({
  setup: () => ({}),
  tools: [
    { name: "look", run: () => "a die" },
    { name: "throw", run: () => ({ eyes: ++thrown + process.pid }) },
  ],
  oracle: () => [{ tool: "look", arguments: {} }, { tool: "throw", arguments: {} }],
  rewards: [{ name: "any", score: () => 1 }],
});
`,
};

describe("replay", { timeout: 60_000 }, () => {
  let tree: Tree;
  beforeEach(() => {
    tree = temporaryTree();
  });
  afterEach(() => tree[Symbol.dispose]());

  it("finds every trajectory of a built-in environment equal, as they are in a second run, and one that is named", async () => {
    const here = { cwd: tree.path };
    const play = async (...options: string[]) => {
      const line = ["rollout", "echo", "--run", "r", "--agent", "random", "-n", "3", "--turns", "4", "--digests", "--json", ...options];
      const found: string[] = [];
      const { folder } = JSON.parse((await aenv(line, here)).stdout);
      for await (const one of readTrajectories(`${folder}/trajectories.jsonl`)) found.push(timeless(one));
      return found.sort();
    };
    expect(await play()).toEqual(await play("--runs", "again", "-c", "1"));
    const all = await aenv(["replay", "r", "--json"], here);
    expect([all.code, JSON.parse(all.stdout)]).toEqual([0, { run: "r", environment: "echo@1.0.0", equal: 9, skipped: 0, unequal: [] }]);
    expect(await aenv(["replay", "r", "0-1"], here)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("1 of 1 trajectories equal"),
    });
    expect(await aenv(["replay", "r", "7-7"], here)).toMatchObject({ code: 2, stderr: expect.stringContaining("no trajectory '7-7'") });
    expect(await aenv(["replay", "q"], here)).toMatchObject({ code: 2, stderr: expect.stringContaining("there is no run 'q'") });
  });

  it("of a run without a scored trajectory says that there is nothing to replay, and exits with 1", async () => {
    const here = { cwd: tree.path };
    await aenv(["rollout", "echo", "--run", "u", "--task", "greet", "--agent", "command", "--", "false"], here);
    expect(await aenv(["replay", "u"], here)).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("nothing to replay") });
  });

  it("names the step, the place and both values of the first difference, and exits with 1", async () => {
    using project = installedTree(dice);
    const here = { cwd: project.path };
    expect(await aenv(["rollout", ".", "--run", "r"], here)).toMatchObject({ code: 0 });
    const { code, stdout, stderr } = await aenv(["replay", "r"], here);
    expect([code, stderr]).toEqual([1, expect.stringContaining("1 of 1 trajectories differ")]);
    expect(stdout).toContain("r/0-0: the observation of step 1, throw, differs");
    expect(stdout).toMatch(/expected {2}"\{.*eyes.*\n +actual {4}"\{.*eyes/);
    expect(stdout).toContain("0 of 1 trajectories equal");
  });

  it("finds a state that differs behind equal answers, if the run has digests", async () => {
    using project = installedTree({
      ...dice,
      "index.ts": `import { defineEnvironment } from "aenvironment";
export default defineEnvironment({
  setup: () => ({ luck: 0 }),
  tools: [
    { name: "look", run: () => "a die" },
    { name: "hide", run: (_, { state }) => { state.luck = Math.random(); return "hidden"; } },
  ],
  oracle: () => [{ tool: "look", arguments: {} }, { tool: "hide", arguments: {} }, { tool: "look", arguments: {} }],
  rewards: [{ name: "any", score: () => 1 }],
});
`,
    });
    const here = { cwd: project.path };
    await aenv(["rollout", ".", "--run", "r", "--digests"], here);
    const { code, stdout } = await aenv(["replay", "r", "--environment", "."], here);
    expect([code, stdout]).toEqual([1, expect.stringContaining("r/0-0: the state after step 1, hide, differs")]);
  });

  it("tells a replay that fails from one that differs", async () => {
    using project = installedTree(dice);
    const here = { cwd: project.path };
    await aenv(["rollout", ".", "--run", "r", "--agent", "noop"], here);
    project.write({ "index.ts": dice["index.ts"].replace("setup: () => ({})", 'setup: () => { throw new Error("no die"); }') });
    const { code, stdout, stderr } = await aenv(["replay", "r", "--environment", "."], here);
    expect([code, stdout]).toEqual([1, expect.stringMatching(/r\/0-0: the replay failed: .*no die/)]);
    expect(stderr).toContain("1 of 1 could not be replayed");
  });

  it("ends an episode that takes longer than --deadline, and says so", async () => {
    using project = installedTree(dice);
    const here = { cwd: project.path };
    await aenv(["rollout", ".", "--run", "r"], here);
    project.write({ "index.ts": dice["index.ts"].replace('run: () => "a die"', "run: () => new Promise(() => {})") });
    const { code, stdout, stderr } = await aenv(["replay", "r", "--environment", ".", "--deadline", "2s"], here);
    expect([code, stdout]).toEqual([1, expect.stringContaining("r/0-0: the replay failed: the episode took longer than 2 s")]);
    expect(stderr).toContain("1 of 1 could not be replayed");
  });

  it("warns when the environment is other code than the run's", async () => {
    using project = installedTree(dice);
    const here = { cwd: project.path };
    await aenv(["rollout", ".", "--run", "r", "--agent", "noop"], here);
    project.write({ "index.ts": dice["index.ts"].replace("score: () => 1", "score: () => 0.5") });
    const { code, stdout, stderr } = await aenv(["replay", "r", "--environment", ".", "--json"], here);
    expect([code, stderr]).toEqual([1, expect.stringContaining("! dice@1.0.0 is not the code that the run was played with")]);
    expect(JSON.parse(stdout).unequal).toMatchObject([
      { kind: "diverged", divergence: { at: "reward", differences: [{ path: "reward", expected: 1, actual: 0.5 }] } },
    ]);
  });
});
