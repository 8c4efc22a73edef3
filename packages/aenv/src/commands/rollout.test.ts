import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Trajectory } from "@aenv/contract";
import { RunFolder } from "@aenv/rollout";
import { type ModelRequest, type ScriptedTurn, scriptedOpenAi, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Platform, projects, publish, startPlatform } from "../platform-tests/platform.ts";
import { aenv, installedTree } from "../testing/cli.ts";

/** Calls the tool 'echo' once, then says that it is done. */
const echoes =
  (text: string) =>
  ({ turn }: ModelRequest): ScriptedTurn =>
    turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text } }] } : "Done.";

describe("rollout", { timeout: 60_000 }, () => {
  let tree: Tree;
  let platform: Platform;
  /** An environment on a server: without one, each command line bundles the environment and starts a server of its own. */
  let published: readonly string[];
  beforeAll(async () => {
    platform = await startPlatform({ store: "memory:" });
    published = [await publish(platform, projects.echo, { isolation: "shared" }), "--system-url", platform.controlUrl];
  });
  afterAll(() => platform?.close());
  beforeEach(() => {
    tree = temporaryTree();
  });
  afterEach(() => tree[Symbol.dispose]());

  const rollout = (argv: readonly string[], options: { stop?: AbortSignal; cwd?: string } = {}) =>
    aenv(["rollout", ...argv], { cwd: tree.path, ...options });

  async function rolloutJson(argv: readonly string[]) {
    const { code, stdout, stderr } = await rollout([...argv, "--json"]);
    expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
    return JSON.parse(stdout);
  }

  async function trajectoriesOf(run: string): Promise<Trajectory[]> {
    const found: Trajectory[] = [];
    for await (const one of new RunFolder(join(tree.path, "runs"), run).trajectories()) found.push(one);
    return found;
  }

  it("scores every task of a built-in environment without a server, and plays nothing the second time", async () => {
    const first = await rolloutJson(["echo"]);
    expect(first).toMatchObject({ isComplete: true, resumed: 0, episodes: 3, scored: 3, unscored: {}, reward: { mean: 1 } });
    expect(first.tasks.map(({ task }: { task: string }) => task)).toEqual(["be-brief", "greet", "recall"]);
    const folder = join(tree.path, "runs", first.run);
    expect(first.folder).toBe(folder);
    const stored = readFileSync(join(folder, "trajectories.jsonl.gz"));
    expect(JSON.parse(readFileSync(join(folder, "run.json"), "utf8"))).toMatchObject({ environment: "echo@1.0.0", samples: 1 });

    const { code, stdout } = await rollout(["echo"]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/The run was complete already, so nothing was played: .*\n {2}--run NAME/)]);
    expect(readFileSync(join(folder, "trajectories.jsonl.gz")).equals(stored)).toBe(true);
  });

  it("names a split or a task that does not exist, and plays nothing", async () => {
    const split = await rollout([...published, "--split", "exam"]);
    expect([split.code, split.stderr]).toEqual([2, expect.stringContaining("echo-shared@1.0.0 has no split 'exam'")]);
    expect((await rollout([...published, "--task", "gret"])).stderr).toContain("Did you mean greet?");
    const task = await rollout([...published, "--task", "greet", "--task", "wave"]);
    expect([task.code, task.stderr]).toEqual([2, expect.stringContaining("echo-shared@1.0.0 has no task 'wave'")]);
    expect(existsSync(join(tree.path, "runs"))).toBe(false);
  });

  it("refuses numbers that are none, and shares that are none", async () => {
    for (const [option, value] of [
      ["--pass-reward", "high"],
      ["--max-unscored", "2"],
      ["--retries-of", "luck=1"],
      ["--retries-of", "model=many"],
      ["--reward-args", "[1]"],
    ] as const) {
      const { code, stderr } = await rollout(["echo", option, value]);
      expect([code, stderr]).toEqual([2, expect.stringContaining(`'${value}'`)]);
    }
  });

  it("gives the reward the arguments of the command line, also when the run is replayed or played again", async () => {
    const hello = { tool: "echo", arguments: { text: "hello" } };
    tree.write({ "twice.json": [hello, hello] });
    const twice = [...published, "--task", "greet", "--agent", "scripted", "--agent-file", "twice.json"];
    expect(await rolloutJson([...twice, "--run", "strict"])).toMatchObject({ reward: { mean: 0.8 } });
    expect(await rolloutJson([...twice, "--run", "lenient", "--reward-args", '{"calls": 2}'])).toMatchObject({ reward: { mean: 1 } });
    for (const again of ["replay", "reproduce"]) {
      const { code, stdout } = await aenv([again, "lenient", ...published.slice(1)], { cwd: tree.path });
      expect([code, stdout]).toEqual([0, expect.stringContaining("equal")]);
    }
    const rescored = await aenv(["rescore", "lenient", "--reward-from", ...published, "--json"], { cwd: tree.path });
    expect(JSON.parse(rescored.stdout)).toMatchObject({ counts: { same: 1 }, summary: { reward: { mean: 1 } } });
  });

  it("scores random calls and an agent that does nothing", async () => {
    const random = await rolloutJson([...published, "--agent", "random", "-n", "2", "--turns", "3"]);
    expect(random).toMatchObject({ episodes: 6, scored: 6 });
    const noop = await rolloutJson([...published, "--agent", "noop", "--split", "train"]);
    expect(noop).toMatchObject({ episodes: 2, scored: 2, reward: { mean: 0 } });
  });

  it("plays the actions of a file, for all tasks or for each, and plays a run again", async () => {
    const hello = [{ tool: "echo", arguments: { text: "hello" } }, { say: "Done." }];
    tree.write({ "all.json": hello, "each.json": { greet: hello, recall: [{ say: "I forget." }] }, "wrong.json": [{ tool: "echo" }] });
    const all = await rolloutJson([...published, "--run", "all", "--agent", "scripted", "--agent-file", "all.json"]);
    expect(all).toMatchObject({ episodes: 3, scored: 3, unscored: {} });
    const rewards = Object.fromEntries(all.tasks.map(({ task, mean }: { task: string; mean: number }) => [task, mean]));
    expect(rewards).toMatchObject({ greet: 1, recall: 0.2 });
    const each = ["--run", "each", "--agent", "scripted", "--agent-file", "each.json", "--max-unscored", "0.5"];
    expect(await rolloutJson([...published, ...each])).toMatchObject({ scored: 2, unscored: { agent: 1 }, reward: { mean: 0.5 } });

    const again = await rolloutJson([...published, "--run", "again", "--agent", "replay", "--replay-from", "all", "--seed", "7"]);
    expect(again).toMatchObject({ episodes: 3, scored: 3, reward: all.reward });
    const written = (run: Trajectory[]) => run.map(({ task, messages }) => [task.id, messages]).sort();
    expect(written(await trajectoriesOf("again"))).toEqual(written(await trajectoriesOf("all")));
    const server = ["--system-url", platform.controlUrl, "--json"];
    for (const run of ["all", "again"]) {
      const { stdout } = await aenv(["reproduce", run, ...server], { cwd: tree.path });
      expect(JSON.parse(stdout)).toMatchObject({ drift: [], reproduced: expect.anything() });
    }

    for (const [given, said] of [
      [["--agent", "scripted"], "--agent-file actions.json"],
      [["--agent", "scripted", "--agent-file", "wrong.json"], "wrong.json holds no actions"],
      [["--agent", "scripted", "--agent-file", "absent.json"], "absent.json cannot be read"],
      [["--agent", "replay"], "--replay-from RUN"],
      [["--agent", "replay", "--replay-from", "none"], "there is no run 'none'"],
    ] as const) {
      const { code, stderr } = await rollout([...published, ...given]);
      expect([code, stderr]).toEqual([2, expect.stringContaining(said)]);
    }
  });

  it("plays a model behind an OpenAI-compatible endpoint", async () => {
    await using model = await scriptedOpenAi(echoes("hello"));
    const agent = ["--agent", "openai", "--model", "m", "--base-url", model.baseUrl, "--model-key", "secret-key"];
    const done = await rolloutJson([...published, "--task", "greet", "--task", "recall", ...agent, "--sampling", "temperature=0.5"]);
    expect(done).toMatchObject({ episodes: 2, scored: 2, reward: { mean: 0.6 }, passAtK: { 1: { value: 0.5, tasks: 2 } } });
    expect(model.refusals).toEqual([]);
    expect(model.requests[0]?.body).toMatchObject({ model: "m", temperature: 0.5 });
    expect(readFileSync(join(done.folder, "run.json"), "utf8")).not.toContain("secret-key");
  });

  it("plays the agent for terminals with a built-in environment, and plays it again from its settings", async () => {
    const answers = ({ turn }: ModelRequest): ScriptedTurn =>
      turn === 0 ? { toolCalls: [{ name: "execute_command", arguments: { command: "seq 20000" } }] } : "Done.";
    await using model = await scriptedOpenAi(answers);
    const agent = ["--agent", "terminal", "--model", "m", "--base-url", model.baseUrl, "--context-tokens", "5000"];
    const done = await rolloutJson(["mini-terminal", "--task", "csv-totals", ...agent]);
    expect(done).toMatchObject({ episodes: 1, scored: 1, reward: { mean: 0 } });
    expect(JSON.stringify(model.requests[1]?.body)).toContain("characters of this old output were removed");
    const again = await aenv(["reproduce", done.run, "--anyway"], { cwd: tree.path });
    expect([again.code, model.requests.length]).toEqual([0, 4]);
  });

  it("has no score for episodes whose model refuses, exits with 1 unless that share is allowed, and plays them again when asked to", async () => {
    let isThere = false;
    await using model = await scriptedOpenAi((request) => (isThere ? echoes("hello")(request) : { status: 400, message: "no such model" }));
    const line = [...published, "--task", "greet", "--agent", "openai", "--model", "m", "--base-url", model.baseUrl];
    const { code, stdout, stderr } = await rollout(line);
    expect([code, stderr]).toEqual([1, expect.stringContaining("1 of 1 episodes are unscored, more than 5 %")]);
    expect(stdout).toMatch(/unscored +1 model/);
    expect(stderr).toMatch(/! unscored by model, the last one: .*no such model/);
    expect(stdout).toContain("none: no episode was scored");
    const asJson = await rollout([...line, "--json"]);
    expect([asJson.code, JSON.parse(asJson.stdout)]).toMatchObject([1, { episodes: 1, scored: 0, unscored: { model: 1 }, reward: null }]);
    expect((await rollout([...line, "--max-unscored", "1"])).code).toBe(0);
    isThere = true;
    expect((await rollout(line)).code).toBe(1);
    expect(await rolloutJson([...line, "--retry-unscored"])).toMatchObject({ isComplete: true, episodes: 1, scored: 1, unscored: {} });
  });

  it("says what an agent lacks", async () => {
    expect(await rollout(["echo", "--agent", "openai"])).toMatchObject({ code: 2, stderr: expect.stringContaining("--model NAME") });
    expect(await rollout(["echo", "--agent", "command"])).toMatchObject({ code: 2, stderr: expect.stringContaining("-- python agent.py") });
    expect(await rollout(["echo", "--agent", "module"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--agent-file agent.ts"),
    });
    expect(await rollout(["echo", "--agent", "terminal"])).toMatchObject({ code: 2, stderr: expect.stringContaining("--model NAME") });
    expect(await rollout(["echo", "--inside"])).toMatchObject({ code: 2, stderr: expect.stringContaining("--agent command -- PROGRAM") });
    expect(await rollout(["echo", "--agent", "command", "--install", "x.sh", "--", "true"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Add: --inside"),
    });
  });

  it("exits with 130 when it is stopped, and the same line plays only what is missing", async () => {
    const stop = new AbortController();
    await using model = await scriptedOpenAi((request) => {
      if (request.index === 5) stop.abort();
      return echoes("hello")(request);
    });
    const line = [...published, "-n", "4", "-c", "1", "--agent", "openai", "--model", "m", "--base-url", model.baseUrl];
    const stopped = await rollout(line, { stop: stop.signal });
    expect([stopped.code, stopped.stderr]).toEqual([130, expect.stringContaining("The same command goes on with the run.")]);
    const { stdout, stderr } = await rollout([...line, "--json"]);
    const { reward, ...resumed } = JSON.parse(stdout);
    expect(resumed).toMatchObject({ isComplete: true, resumed: 2, episodes: 12, scored: 12 });
    // The live view counts the episodes of the first call too.
    expect(stderr).toMatch(new RegExp(`12/12 done.* reward ${reward.mean.toFixed(3)} `));
  });

  it("refuses to go on with a named run that has other settings, and says which", async () => {
    await rolloutJson([...published, "--run", "mine", "--task", "greet"]);
    const { code, stderr } = await rollout([...published, "--run", "mine", "--task", "greet", "--seed", "7"]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("run 'mine' was begun with seed = 0, not 7")]);
  });

  it("plays the environment of a folder", async () => {
    using project = installedTree({
      "my-env/config.json": { name: "my-env", version: "2.0.0", main: "index.ts" },
      "my-env/index.ts": `import { defineEnvironment } from "aenvironment";
export default defineEnvironment({
  setup: () => ({ calls: 0 }),
  tools: [{ name: "hit", run: (_, { state }) => ++state.calls }],
  oracle: () => [{ tool: "hit", arguments: {} }],
  rewards: [{ name: "hits", score: ({ state }) => state.calls }],
});
`,
    });
    const { code, stdout } = await rollout(["./my-env", "--json"], { cwd: project.path });
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { episodes: 1, scored: 1, reward: { mean: 1 } }]);
    expect(JSON.parse(stdout).run).toMatch(/^my-env-2\.0\.0-oracle-/);
  });

  it("plays name@version on a server, and leaves no instance behind", async () => {
    const done = await rolloutJson([...published, "-n", "2"]);
    expect(done).toMatchObject({ episodes: 6, scored: 6, reward: { mean: 1 } });
    expect(await platform.demand("GET", "/env-instance/*/list")).toEqual([]);
  });

  it("has the provenance that the service has for the same episode", async () => {
    const variables = { FLAVOUR: "plain" };
    await rolloutJson([...published, "--run", "mine", "--task", "greet", "--tool-calls", "3", "--var", "FLAVOUR=plain"]);
    const [trajectory] = await trajectoriesOf("mine");
    const [environment] = published;
    const rollout = { id: "same", environment, task: { id: "greet" }, agent: { kind: "oracle" }, limits: { tool_calls: 3 }, variables };
    const body = JSON.stringify({ rollouts: [rollout], stream: true });
    const headers = { "content-type": "application/json" };
    const lines = await (await fetch(`${platform.controlUrl}/rollouts`, { method: "POST", headers, body })).text();
    const result = JSON.parse(lines.split("\n").find((line) => line.includes("provenance")) ?? "") as Trajectory;
    const digests = ({ provenance: { environment_digest, config_digest, agent_digest, tools_digest } }: Trajectory) => ({
      environment_digest,
      config_digest,
      agent_digest,
      tools_digest,
    });
    expect(digests(result)).toEqual(digests(trajectory as Trajectory));
    expect(Object.values(digests(result))).not.toContain(null);
  });

  it("adds up what the model costs, by prices of the command line or of a file", async () => {
    await using model = await scriptedOpenAi(echoes("hello"));
    const line = [...published, "--task", "greet", "--agent", "openai", "--model", "m", "--base-url", model.baseUrl];
    const { cost } = await rolloutJson([...line, "--price-input", "2", "--price-output", "8"]);
    expect(cost).toEqual({ total: expect.any(Number), episodes: 1, perPass: cost.total });
    expect(cost.total).toBeGreaterThan(0);
    tree.write({ "prices.json": { m: { input: 4, output: 16 } } });
    const twice = await rolloutJson([...line, "--run", "twice", "--prices", "prices.json"]);
    expect(twice.cost.total).toBeCloseTo(2 * cost.total, 12);
    expect((await rollout([...line, "--run", "twice"])).stdout).toMatch(/cost +0\.0*\d+, 0\.0*\d+ per passed episode/);
    expect((await rolloutJson([...line, "--run", "free"])).cost).toBeNull();
    for (const [given, said] of [
      [["--price-input", "2"], "the prices of input and of output"],
      [["--model", "other", "--prices", "prices.json"], "has no price of 'other'"],
      [["--prices", "absent.json"], "cannot be read"],
    ] as const) {
      const { code, stderr } = await rollout([...line, ...given]);
      expect([code, stderr]).toEqual([2, expect.stringContaining(said)]);
    }
  });

  it("plays the samples of a task as forks of one episode, and refuses to fork a program", async () => {
    const done = await rolloutJson([...published, "--run", "forked", "--agent", "random", "--fork-at", "1", "-n", "3", "--task", "greet"]);
    expect(done).toMatchObject({ isComplete: true, episodes: 3, scored: 3 });
    await aenv(["export", "forked", "--format", "trajectories", "--out", "rows.jsonl"], { cwd: tree.path });
    const rows = readFileSync(join(tree.path, "rows.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((row) => JSON.parse(row));
    expect(rows.map(({ parent }) => parent.steps)).toEqual([1, 1, 1]);
    expect(new Set(rows.map(({ steps }) => JSON.stringify(steps[0].call))).size).toBe(1);
    expect(new Set(rows.map(({ steps }) => JSON.stringify(steps.map(({ call }: { call: unknown }) => call)))).size).toBe(3);
    const program = await rollout([...published, "--fork-at", "1", "--agent", "command", "--", "true"]);
    expect([program.code, program.stderr]).toEqual([2, expect.stringContaining("'command' is a program, which cannot be forked")]);
  });

  it("says that an environment is not there", async () => {
    const { code, stderr } = await rollout(["nowhere@1.0.0", "--system-url", platform.controlUrl]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("nowhere")]);
  });
});
