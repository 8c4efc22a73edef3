import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scriptedOpenAi, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { aenv } from "../testing/cli.ts";

describe("runs, tasks and export", { timeout: 60_000 }, () => {
  let tree: Tree;
  /** What the rollouts have printed. */
  const played: string[] = [];
  /** The first run has every reward 1; the second has 1, 0.2, 1 and 0.2 for one task. */
  beforeAll(async () => {
    tree = temporaryTree();
    // Two requests an episode, one episode after the other: every second episode says the wrong word.
    await using model = await scriptedOpenAi(({ index, turn }) =>
      turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text: index % 4 === 0 ? "hello" : "wrong" } }] } : "Done.",
    );
    const agent = ["--agent", "openai", "--model", "m", "--base-url", model.baseUrl];
    for (const argv of [
      ["--run", "upper"],
      ["--run", "mixed", "--task", "greet", "-n", "4", "-c", "1", ...agent],
    ]) {
      const { code, stdout, stderr } = await aenv(["rollout", "echo", ...argv], { cwd: tree.path });
      if (code !== 0) throw new Error(stderr);
      played.push(stdout);
    }
  }, 60_000);
  afterAll(() => tree?.[Symbol.dispose]());

  const run = (...argv: string[]) => aenv(argv, { cwd: tree.path });

  async function json(...argv: string[]) {
    const { code, stdout, stderr } = await run(...argv, "--json");
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout);
  }

  async function exported(...argv: string[]) {
    const { file, ...counts } = await json("export", ...argv);
    const rows = readFileSync(file, "utf8").split("\n").filter(Boolean);
    return { counts, rows: rows.map((row) => JSON.parse(row)) };
  }

  it("lists the runs with their mean rewards", async () => {
    const { stdout } = await run("runs", "list");
    expect(stdout).toMatch(/mixed +│ echo@1\.0\.0 +│ openai +│ m +│ 1 x 4 +│ 0\.600/);
    expect(stdout).toMatch(/upper +│ echo@1\.0\.0 +│ oracle +│ +│ 3 x 1 +│ 1\.000/);
    expect((await json("runs", "list")).map(({ name }: { name: string }) => name).sort()).toEqual(["mixed", "upper"]);
    expect((await aenv(["runs", "list"], { cwd: "/" })).stdout).toContain("No runs.");
  });

  it("shows the numbers of a run by its name and by its folder", async () => {
    const shown = await json("runs", "show", "mixed");
    expect(shown).toMatchObject({ isComplete: true, summary: { episodes: 4, scored: 4, passAtK: { 1: { value: 0.5 } } } });
    expect(await json("runs", "show", "./runs/mixed/")).toEqual(shown);
    expect((await run("runs", "show", "mixed")).stdout).toMatch(/pass\^4 +0\.0 % of 1 tasks/);
    const missing = await run("runs", "show", "lost");
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringMatching(/there is no run 'lost'[\s\S]*There are: mixed, upper/)]);
  });

  it("shows the components of the reward after a rollout, of a run, and beside those of another", async () => {
    for (const text of [played[1], (await run("runs", "show", "mixed")).stdout])
      expect(text).toMatch(/component +│ mean +│ episodes[\s\S]*brief +│ \d\.\d{3}[\s\S]*said_it +│ \d\.\d{3}/);
    const both = (await run("runs", "compare", "mixed", "upper", "--components")).stdout;
    expect(both).toMatch(/component +│ mixed +│ upper +│ difference[\s\S]*said_it +│ \d\.\d{3} +│ 1\.000/);
    expect((await run("runs", "compare", "mixed", "upper")).stdout).not.toContain("said_it");
  });

  it("prints one episode: what was said and done, and how it was scored", async () => {
    const { stdout } = await run("runs", "show", "mixed", "greet-1");
    expect(stdout).toMatch(
      /episode +mixed\/0-1[\s\S]*task +greet[\s\S]*user\n {2}\S[\s\S]*echo \{"text"[\s\S]*reward +0\.2\n +said_it +0\n +brief +1[\s\S]*stopped +done/,
    );
    expect((await run("runs", "show", "mixed", "0-1")).stdout).toBe(stdout);
    expect(await json("runs", "show", "mixed", "greet-1")).toMatchObject({ id: "mixed/0-1", task: { id: "greet" } });
    const missing = await run("runs", "show", "mixed", "gret-1");
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringMatching(/no episode 'gret-1'[\s\S]*Did you mean greet-1\?/)]);
  });

  it("compares two runs on the tasks that both have", async () => {
    const { tasks, difference } = await json("runs", "compare", "mixed", "upper");
    expect(tasks).toEqual([{ task: "greet", first: expect.closeTo(0.6), second: 1, difference: expect.closeTo(0.4) }]);
    expect(difference.mean).toBeCloseTo(0.4);
    const { stdout } = await run("runs", "compare", "mixed", "upper");
    expect(stdout).toMatch(/greet +│ 0\.600 +│ 1\.000 +│ \+0\.400/);
    expect(stdout).toMatch(/agent\.name +│ openai +│ oracle/);
    expect(stdout).toMatch(/samples +│ 4 +│ 1/);
    expect(stdout).toMatch(/pass@1 +│ 50\.0 % +│ 100\.0 %/);
    expect(stdout).toMatch(/tasks in both +1, 1 changed; 2 scored in one run only are left out/);
  });

  it("shows the pass rate of each task", async () => {
    expect(await json("tasks", "stats", "mixed")).toMatchObject({ tasks: [{ task: "greet", episodes: 4, passes: 2, passRate: 0.5 }] });
    expect((await run("tasks", "stats", "upper")).stdout).toMatch(/recall +│ 1\.000 +│ 1\/1/);
  });

  it("exports conversations with their tools, and says what was left out", async () => {
    const { counts, rows } = await exported("mixed", "--min-reward", "1");
    expect(counts).toEqual({ format: "sft", rows: 2, kept: 2, dropped: { reward: 2 }, skipped: {} });
    expect(rows[0].messages.map(({ role }: { role: string }) => role)).toEqual(["system", "user", "assistant", "tool", "assistant"]);
    expect(rows[0].messages[2].tool_calls[0].function).toEqual({ name: "echo", arguments: { text: "hello" } });
    expect(JSON.parse(rows[0].tools).map((tool: { function: { name: string } }) => tool.function.name)).toEqual(["echo", "remember"]);
    const { stdout } = await run("export", "mixed", "--min-reward", "1");
    expect(stdout).toContain(`2 rows of 2 trajectories in ${join(tree.path, "mixed.sft.jsonl")}`);
    expect(stdout).toContain("left out: 2 reward");
  });

  it("exports the format of OpenAI's fine-tuning, with arguments as text", async () => {
    const { rows } = await exported("upper", "--format", "openai", "--out", "tuning.jsonl");
    expect(rows).toHaveLength(3);
    for (const { messages, tools } of rows) {
      const call = messages.find((message: { tool_calls?: unknown }) => message.tool_calls).tool_calls[0];
      expect([typeof call.function.arguments, tools[0].type]).toEqual(["string", "function"]);
    }
  });

  it("exports pairs of a better and a worse sample", async () => {
    const { rows } = await exported("mixed", "--format", "preference");
    expect(rows).toHaveLength(1);
    expect(rows[0].chosen[0].tool_calls[0].function.arguments).toEqual({ text: "hello" });
    expect(rows[0].rejected[0].tool_calls[0].function.arguments).toEqual({ text: "wrong" });
    expect((await exported("upper", "--format", "preference")).rows).toEqual([]);
  });

  it("exports files of tasks: Parquet for verl, JSON lines for others", async () => {
    const { file, ...counts } = await json("export", "upper", "--format", "verl");
    expect([file, counts.rows]).toEqual([join(tree.path, "upper.verl.parquet"), 3]);
    expect(readFileSync(file).subarray(0, 4).toString()).toBe("PAR1");
    const { rows, counts: ofTasks } = await exported("mixed", "--format", "slime");
    expect(rows).toEqual([{ prompt: expect.stringContaining("hello"), label: "", metadata: { environment: "echo@1.0.0", task: "greet" } }]);
    expect(ofTasks).toMatchObject({ kept: 4, skipped: { "same task": 3 } });
    expect((await run("export", "mixed", "--format", "slime")).stdout).toContain("without a row: 3 same task");
  });

  it("describes a file for LLaMA-Factory beside it, and keeps what others have described there", async () => {
    mkdirSync(join(tree.path, "data"));
    const list = join(tree.path, "data/dataset_info.json");
    writeFileSync(list, '{"other":{"file_name":"other.json"}}');
    expect((await exported("upper", "--format", "llama-factory", "--out", "data/echo.jsonl")).rows).toHaveLength(3);
    expect(JSON.parse(readFileSync(list, "utf8"))).toMatchObject({ other: {}, echo: { file_name: "echo.jsonl", formatting: "openai" } });
    writeFileSync(list, "{");
    const refused = await run("export", "upper", "--format", "llama-factory", "--out", "data/echo.jsonl");
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("dataset_info.json is not JSON")]);
  });

  it("leaves the file of an earlier export as it was if it cannot write a new one", async () => {
    const { code, stderr } = await run("export", "upper", "--out", "no-such-folder/rows.jsonl");
    expect([code, stderr]).toEqual([1, expect.stringContaining("no-such-folder")]);
  });

  it("filters by group, by task and by pass rate", async () => {
    expect((await exported("mixed", "--best-of-group", "1")).counts).toMatchObject({ kept: 1, dropped: { "not best of group": 3 } });
    expect((await exported("mixed", "--per-task", "3")).counts).toMatchObject({ kept: 3, dropped: { "task limit": 1 } });
    expect((await exported("mixed", "--pass-rate", "0.6,1")).counts).toMatchObject({ kept: 0, dropped: { "pass rate": 4 } });
    expect((await exported("mixed", "--pass-rate", "0.1,0.9")).counts).toMatchObject({ kept: 4 });
  });

  it("refuses bounds that are none", async () => {
    for (const bounds of ["0.5", "low,high", "0.9,0.1"]) {
      const { code, stderr } = await run("export", "mixed", "--pass-rate", bounds);
      expect([code, stderr]).toEqual([2, expect.stringContaining(`'${bounds}'`)]);
    }
    expect(await run("export", "mixed", "--min-reward", "much")).toMatchObject({ code: 2, stderr: expect.stringContaining("'much'") });
  });
});
