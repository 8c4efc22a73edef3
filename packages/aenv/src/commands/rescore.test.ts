import { join } from "node:path";
import { scriptedOpenAi, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Platform, publish, startPlatform } from "../platform-tests/platform.ts";
import { aenv, installedTree } from "../testing/cli.ts";

/** The second task is solved by two calls; `look` is what a version may answer differently. */
function version(number: string, { hits = "state.calls", look = "a wall", rule = "" } = {}) {
  return {
    [`${number}/config.json`]: { name: "count", version: number, main: "index.ts" },
    [`${number}/index.ts`]: `import { defineEnvironment } from "aenvironment";
${rule}
export default defineEnvironment({
  tasks: () => [{ id: "one", instruction: "Hit once." }, { id: "two", instruction: "Hit, and look." }],
  setup: () => ({ calls: 0 }),
  tools: [{ name: "hit", run: (_, { state }) => ++state.calls }, { name: "look", run: () => "${look}" }],
  oracle: ({ task }) => [{ tool: "hit", arguments: {} }, ...(task.id === "two" ? [{ tool: "look", arguments: {} }] : [])],
  rewards: [{ name: "hits", score: ({ state, task }) => ${hits} }, { name: "style", score: () => 1, weight: 0 }],
});
`,
  };
}

describe("rescore and reproduce", { timeout: 60_000 }, () => {
  let platform: Platform;
  let sources: Tree;
  let tree: Tree;
  beforeAll(async () => {
    sources = installedTree({
      ...version("1.0.0"),
      ...version("1.1.0", { hits: 'task.id === "two" ? 0.5 : 1' }),
      ...version("1.2.0", { look: "a gate" }),
      ...version("1.3.0", { hits: "new Promise(() => {})" }),
      ...version("0.9.0", { hits: '(() => { if (task.id === "two") throw new Error("no rule for it"); return 1; })()' }),
    });
    platform = await startPlatform();
    for (const number of ["0.9.0", "1.0.0", "1.1.0", "1.2.0", "1.3.0"]) await publish(platform, join(sources.path, number));
  }, 60_000);
  afterAll(async () => {
    await platform?.close();
    sources?.[Symbol.dispose]();
  });
  beforeEach(() => {
    tree = temporaryTree();
  });
  afterEach(() => tree[Symbol.dispose]());

  const run = (...argv: string[]) => aenv(argv, { cwd: tree.path });
  const onPlatform = (...argv: string[]) => run(...argv, "--system-url", platform.controlUrl);

  async function json(...argv: string[]) {
    const { code, stdout } = await onPlatform(...argv, "--json");
    return { code, ...JSON.parse(stdout) };
  }

  it("shows which rewards another version changes, and makes a run that other commands read", async () => {
    await onPlatform("rollout", "count@1.0.0", "--run", "r", "-n", "2");
    const done = await json("rescore", "r", "--reward-from", "count@1.1.0", "--run", "new");
    expect(done).toMatchObject({ code: 0, run: "new", from: "r", counts: { same: 2, "now failed": 2 } });
    expect(done.different).toMatchObject([
      { id: "new/1-0", task: "two", before: { reward: 1 }, after: { reward: 0.5, components: { hits: 0.5, style: 1 } }, divergence: null },
      { id: "new/1-1" },
    ]);
    const { code, stdout } = await onPlatform("rescore", "r", "--reward-from", "count@1.1.0", "--run", "new");
    expect([code, stdout]).toEqual([0, expect.stringMatching(/two +│ 1-0 +│ 1\.000 +│ 0\.500 +│ now failed +│ hits 1 → 0\.5/)]);
    expect((await run("runs", "show", "new")).stdout).toMatch(/mean reward +0\.750/);
    expect((await run("runs", "show", "r")).stdout).toMatch(/mean reward +1\.000/);
    expect((await run("runs", "compare", "r", "new")).stdout).toMatch(/two +│ 1\.000 +│ 0\.500/);
    expect((await run("export", "new", "--min-reward", "1")).stdout).toContain("2 rows of 2 trajectories");
  });

  it("gives no score to a trajectory that the other version answers differently, and exits with 1", async () => {
    await onPlatform("rollout", "count@1.0.0", "--run", "r");
    const done = await json("rescore", "r", "--reward-from", "count@1.2.0", "--run", "new");
    expect(done).toMatchObject({ code: 1, counts: { same: 1, diverged: 1 }, summary: { scored: 1, unscored: { environment: 1 } } });
    expect(done.different).toMatchObject([{ task: "two", after: { kind: "unscored" }, divergence: { at: "observation", step: 1 } }]);
    const { code, stdout, stderr } = await onPlatform("rescore", "r", "--reward-from", "count@1.2.0", "--run", "new");
    expect(stdout).toContain('the observation of step 1 differs: content[0].text was "a wall" and is now "a gate"');
    expect([code, stderr]).toEqual([1, expect.stringContaining("1 of 2 trajectories have no new score")]);
  });

  it("gives no score to a trajectory whose episode takes longer than --deadline", async () => {
    await onPlatform("rollout", "count@1.0.0", "--run", "r", "--task", "one");
    const done = await json("rescore", "r", "--reward-from", "count@1.3.0", "--deadline", "2s", "--retries", "0");
    expect(done).toMatchObject({ code: 1, counts: { unscored: 1 }, summary: { unscored: { timeout: 1 } } });
    expect(done.different).toMatchObject([{ after: { kind: "unscored", message: "the episode took longer than 2 s" } }]);
  });

  it("scores what only the score had failed of", async () => {
    await onPlatform("rollout", "count@0.9.0", "--run", "r", "--max-unscored", "1");
    const done = await json("rescore", "r", "--reward-from", "count@1.0.0");
    expect(done).toMatchObject({ code: 0, counts: { same: 1, "newly scored": 1 }, summary: { scored: 2, unscored: {} } });
    expect(done.run).toMatch(/^r-rescored-1\.0\.0-[0-9a-f]{8}$/);
  });

  it("reproduces a run and finds every trajectory equal", async () => {
    await onPlatform("rollout", "count@1.0.0", "--run", "r", "--agent", "random", "-n", "2", "--turns", "3");
    expect(await json("reproduce", "r")).toMatchObject({ code: 0, drift: [], compared: 4, equal: 4, reproduced: "r-reproduced-1" });
    const { code, stdout } = await onPlatform("reproduce", "r");
    expect([code, stdout]).toEqual([0, expect.stringMatching(/Nothing that is recorded has changed[\s\S]*4 of 4 trajectories/)]);
    expect(stdout).toContain("r-reproduced-2");
  });

  it("names what has changed since, plays nothing then unless it is told to, and names the first difference", async () => {
    await onPlatform("rollout", "count@1.0.0", "--run", "r");
    const other = ["reproduce", "r", "--environment", "count@1.1.0"];
    const drifted = await json(...other);
    expect(drifted).toMatchObject({ code: 1, reproduced: null });
    expect(drifted.drift.map(({ field }: { field: string }) => field)).toEqual(["environment", "environment digest", "reward code"]);
    const { code, stdout, stderr } = await onPlatform(...other);
    expect(stdout).toMatch(/environment +│ count@1\.0\.0 +│ count@1\.1\.0/);
    expect([code, stderr]).toEqual([1, expect.stringContaining("what it was played with has changed")]);
    expect((await run("runs", "list")).stdout).not.toContain("reproduced");
    const played = await json(...other, "--anyway");
    expect(played).toMatchObject({ code: 1, compared: 2, equal: 1, first: { id: "1-0" } });
    expect(played.first.differences[0]).toEqual({ path: "outcome.reward", expected: 1, actual: 0.5 });
  });

  it("names the environment's digest where code has changed that the reward functions call", async () => {
    const calling = (worth: string) => version("1.0.0", { hits: "worth(state)", rule: `const worth = ({ calls }) => ${worth};` });
    using project = installedTree(calling("calls"));
    const here = { cwd: project.path };
    await aenv(["rollout", "1.0.0", "--run", "r"], here);
    project.write(calling("2 * calls"));
    const { code, stdout } = await aenv(["reproduce", "r", "--json"], here);
    expect([code, JSON.parse(stdout).drift]).toMatchObject([1, [{ field: "environment digest" }]]);
  });

  it("reproduces a run of a model with its own settings, and does not demand the same answers", async () => {
    await using model = await scriptedOpenAi(({ index }) => `Done, for the ${index}th time.`);
    const agent = ["--agent", "openai", "--model", "m", "--base-url", model.baseUrl, "--sampling", "temperature=0.5"];
    await onPlatform("rollout", "count@1.0.0", "--run", "r", "--task", "one", ...agent);
    expect(await json("reproduce", "r")).toMatchObject({ code: 0, drift: [], compared: 1, equal: 0, isDeterministic: false });
    expect(model.requests.at(-1)?.body).toMatchObject({ model: "m", temperature: 0.5 });
  });

  it("says that a rescored run was never played", async () => {
    await onPlatform("rollout", "count@1.0.0", "--run", "r");
    await onPlatform("rescore", "r", "--reward-from", "count@1.1.0", "--run", "new");
    expect(await onPlatform("reproduce", "new")).toMatchObject({ code: 2, stderr: expect.stringContaining("it was never played") });
  });
});
