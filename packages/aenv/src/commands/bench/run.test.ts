import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { aenv } from "../../testing/cli.ts";

const project = new URL("../../bench/fixtures/sums", import.meta.url).pathname;

describe("a benchmark", { timeout: 120_000 }, () => {
  let tree: Tree;
  beforeAll(() => {
    tree = temporaryTree({
      "data/tasks.json": { one: [1], two: [1, 1], three: [1, 2] },
      "more/tasks.json": { one: [1], two: [2, 0], three: [1, 2] },
      "images/tasks.json": { one: [1], "image-a": [2], "image-b": [3] },
      "answers.json": { one: 1, two: 7, three: null },
      "unknown.json": { four: 4 },
    });
  });
  afterAll(() => tree[Symbol.dispose]());

  const bench = (...argv: string[]) => aenv(["bench", ...argv], { cwd: tree.path, env: { AENV_HOME: join(tree.path, "home") } });
  const json = async (...argv: string[]) => {
    const { code, stdout, stderr } = await bench(...argv, "--json");
    expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
    return JSON.parse(stdout);
  };
  const results = (run: string) => {
    const folder = join(tree.path, "runs", run, "results");
    return Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]));
  };

  it("is played with its data, and writes its own results beside the run", async () => {
    const line = ["run", project, "--from", "data", "-n", "2", "--run", "played"];
    const first = await json(...line);
    expect(first).toMatchObject({ episodes: 6, scored: 6, reward: { mean: 1 }, resumed: 0, results: { files: "6" } });
    expect(results("played")).toMatchObject({ "one-0.txt": "oracle 1 one: 1", "two-1.txt": "oracle 1 two: 2" });
    expect(readFileSync(join(tree.path, "runs/played/artifacts/0-0/logs/graded.txt"), "utf8")).toBe("one: 1");
    expect(await json(...line)).toMatchObject({ episodes: 6, resumed: 6, results: { files: "6" } });
    const shown = await aenv(["runs", "show", "played"], { cwd: tree.path });
    expect(shown.stdout).toMatch(/artifacts +.*runs\/played\/artifacts, of 6 episodes/);
    const other = await bench("run", project, "--from", "more", "-n", "2", "--run", "played");
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining("was begun with data_digest")]);
  });

  it("is played again with the data of its run, which is prepared again if it is gone", async () => {
    await json("run", project, "--from", "data", "--run", "again");
    const run = (...argv: string[]) => aenv(argv, { cwd: tree.path, env: { AENV_HOME: join(tree.path, "home") } });
    const replayed = await run("replay", "again");
    expect([replayed.code, replayed.stdout]).toEqual([0, expect.stringContaining("3 of 3 trajectories equal")]);
    rmSync(join(tree.path, "home/datasets"), { recursive: true });
    const reproduced = await run("reproduce", "again");
    expect([reproduced.code, reproduced.code === 0 ? "" : reproduced.stderr]).toEqual([0, ""]);
    rmSync(join(tree.path, "home/datasets"), { recursive: true });
    writeFileSync(join(tree.path, "data/tasks.json"), JSON.stringify({ one: [1], two: [1, 1], three: [1, 3] }));
    const changed = await run("replay", "again");
    expect([changed.code, changed.stderr]).toEqual([2, expect.stringContaining("played with other data than")]);
    writeFileSync(join(tree.path, "data/tasks.json"), JSON.stringify({ one: [1], two: [1, 1], three: [1, 2] }));
  });

  it("shows its own results after the numbers of the run", async () => {
    const { code, stdout } = await bench("run", project, "--from", "data", "--task", "two", "--agent", "noop", "--out", "elsewhere");
    expect([code, stdout]).toEqual([0, expect.stringMatching(/mean reward +0\.000[\s\S]*files +1/)]);
    expect(readdirSync(join(tree.path, "elsewhere"))).toEqual(["two-0.txt"]);
  });

  it("grades answers that exist already", async () => {
    const graded = await json("grade", project, "--from", "data", "--predictions", "answers.json", "--run", "graded");
    expect(graded).toMatchObject({ episodes: 3, scored: 3, passAtK: { 1: { tasks: 3 } }, results: { files: "3" } });
    expect(results("graded")).toEqual({ "one-0.txt": "file 1 one: 1", "two-0.txt": "file 0 two: 7", "three-0.txt": "file 0 " });
    const gold = await json("grade", project, "--from", "data", "--predictions", "gold", "--task", "two", "--run", "gold");
    expect([gold.episodes, gold.reward.mean]).toEqual([1, 1]);
    expect(await json("grade", project, "--regrade", "graded")).toMatchObject({ results: { files: "3" } });
    const other = await bench("grade", project, "--from", "more", "--regrade", "graded");
    expect([other.code, other.stderr]).toEqual([0, expect.stringContaining("is not that with which the run was graded")]);
  });

  it.each([
    [["run", "sums"], 2, "there is no benchmark 'sums'"],
    [["run", project], 2, "the data of sums is not prepared"],
    [["run", project, "--from", "nowhere"], 2, "nowhere"],
    [["run", project, "--from", "images"], 2, "which the engine process cannot run"],
    [["run", project, "--from", "data", "--system-url", "http://127.0.0.1:1"], 2, "a server has its own"],
    [["run", project, "--domain", "a"], 2, "--domain chooses a part of what --from names"],
    [["grade", project, "--from", "data"], 2, "name the answers to grade"],
    [["grade", project, "--from", "data", "--predictions", "nowhere.json"], 2, "nowhere.json"],
    [["grade", project, "--from", "data", "--predictions", "unknown.json"], 2, "there is no task 'four'"],
    [["grade", project, "--from", "data", "--regrade", "nothing"], 2, "there is no run 'nothing'"],
    [["grade", "tau2", "--predictions", "gold"], 2, "tau2 cannot grade answers"],
  ])("says what is wrong with the line %j", async (argv, code, problem) => {
    const ran = await bench(...argv);
    expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(problem)]);
  });

  it("needs the images that the variables of the run say", async () => {
    expect(await json("run", project, "--from", "images", "--var", "IMAGES=no", "--run", "no-images")).toMatchObject({ episodes: 3 });
  });

  it("lists the images that its tasks need, and fails if some cannot be had", async () => {
    const { code, stdout } = await bench("images", project, "--from", "images", "--task", "image-a", "--json");
    const missing = { image: "127.0.0.1:1/image-a:1", tasks: ["image-a"], isPresent: false, canBeBuilt: false, error: null };
    expect([code, JSON.parse(stdout)]).toEqual([1, [missing]]);
    expect(await json("images", project, "--from", "data")).toEqual([]);
    expect(existsSync(join(tree.path, "runs/sums"))).toBe(false);
  });

  it("prints what its data contains", async () => {
    const { stdout } = await bench("data", project, "--from", "data", "--to", "prepared");
    expect(stdout).toMatch(/tasks +3[\s\S]*Sums are easy\.[\s\S]*SUMS_DATA_DIR=/);
  });
});
