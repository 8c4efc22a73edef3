import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Trajectory } from "@aenv/contract";
import { RunFolder } from "@aenv/rollout";
import { scriptedOpenAi, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Platform, projects, publish, startPlatform } from "../platform-tests/platform.ts";
import { aenv } from "../testing/cli.ts";

/** The rows of the tables in an output, without their lines. */
function cells(stdout: string): string[] {
  return stdout.split("\n").map((line) => line.replaceAll(/[\s│]+/g, " ").trim());
}

describe("rollout with players", { timeout: 60_000 }, () => {
  let tree: Tree;
  let platform: Platform;
  let model: Awaited<ReturnType<typeof scriptedOpenAi>>;
  let server: readonly string[];
  let kuhn: string;
  let echo: string;
  beforeAll(async () => {
    tree = temporaryTree();
    platform = await startPlatform({ store: "memory:" });
    kuhn = await publish(platform, projects.kuhn, { isolation: "shared" });
    echo = await publish(platform, projects.echo, { isolation: "shared" });
    server = ["--system-url", platform.controlUrl];
    model = await scriptedOpenAi(() => ({ toolCalls: [{ name: "act", arguments: { move: "b" } }] }), { tokens: { engine: "vllm" } });
  });
  afterAll(async () => {
    await model?.[Symbol.asyncDispose]();
    await platform?.close();
    tree?.[Symbol.dispose]();
  });

  const run = (...argv: string[]) => aenv(argv, { cwd: tree.path });
  const rollout = (...argv: string[]) => run("rollout", kuhn, ...server, ...argv);

  async function json(...argv: string[]) {
    const { code, stdout, stderr } = await run(...argv, "--json");
    expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
    return JSON.parse(stdout);
  }

  async function trajectoriesOf(name: string): Promise<Trajectory[]> {
    const found: Trajectory[] = [];
    for await (const one of new RunFolder(join(tree.path, "runs"), name).trajectories()) found.push(one);
    return found;
  }

  async function exported(name: string, format: string, ...options: string[]) {
    const { file } = await json("export", name, "--format", format, "--out", join(tree.path, `${name}-${format}.jsonl`), ...options);
    return readFileSync(file, "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  it("plays a model against a frozen opponent: the run shows both, and the export has exactly what is trained", async () => {
    const players = ["--player", `first=openai:m@${model.baseUrl}`, "--player", "second=oracle", "--tokens"];
    const played = await rollout("--run", "trained", "-n", "6", ...players);
    expect(played.code).toBe(0);
    expect(cells(played.stdout)).toEqual(expect.arrayContaining(["role scored mean gave up", "first 6/6 1.000 0", "second 6/6 -1.000 0"]));
    const found = await trajectoriesOf("trained");
    expect(found).toHaveLength(6);
    for (const { roles, outcome, provenance } of found) {
      expect(outcome).toMatchObject({ kind: "scored", reward: 0 });
      // It bets and the oracle passes.
      expect(roles?.first).toMatchObject({ agent: "openai", model: "m", trainable: true, outcome: { reward: 1 } });
      expect(roles?.second).toMatchObject({ agent: "oracle", model: null, trainable: false, outcome: { reward: -1 } });
      expect(provenance).toMatchObject({ agent: "players", model: "m" });
    }
    const rows = await exported("trained", "tokens");
    expect(rows.map(({ role, reward, group_id }) => [role, reward, group_id])).toEqual(
      Array.from({ length: 6 }, () => ["first", 1, "trained/0#first"]),
    );
    expect(new Set(rows.map(({ rollout_id }) => rollout_id)).size).toBe(6);
    expect(await exported("trained", "sft")).toHaveLength(6);
    const whole = await exported("trained", "trajectories");
    expect(whole.map(({ roles }) => Object.keys(roles))).toEqual(Array(6).fill(["first", "second"]));
    expect((await run("replay", "trained", ...server)).stdout).toContain("6 of 6 trajectories equal");
    const shown = await run("runs", "show", "trained");
    expect(cells(shown.stdout)).toContain("second 6/6 -1.000 0");
    const episode = await run("runs", "show", "trained", found[0]?.id.split("/").at(-1) ?? "");
    expect(episode.stdout).toMatch(/role\s+first\n\s*played by\s+openai, m\n\s*reward\s+1/);
  });

  it("trains both in self-play, and one of several models that were drawn is never trained unless it is named", async () => {
    const own = `openai:m@${model.baseUrl}`;
    await rollout("--run", "self", "-n", "4", "--player", `first=${own}`, "--player", `second=${own}`, "--tokens");
    expect((await exported("self", "tokens")).map(({ role }) => role)).toEqual(Array(4).fill(["first", "second"]).flat());
    const opponents = ["--player", `second=openai:old@${model.baseUrl}`, "--player", `second=openai:older@${model.baseUrl}`];
    await rollout("--run", "drawn", "-n", "16", "--rotate", "--player", `first=${own}`, ...opponents);
    const drawn = await trajectoriesOf("drawn");
    const roles = drawn.flatMap((one) => Object.entries(one.roles ?? {}));
    expect(new Set(roles.map(([role, { player, model: by, trainable }]) => `${role} ${player} ${by} ${trainable}`))).toEqual(
      new Set(["first", "second"].flatMap((role) => [`${role} first m true`, `${role} second old false`, `${role} second older false`])),
    );
    expect(await exported("drawn", "sft")).toHaveLength(16);
    const { players } = await json(
      "rollout",
      kuhn,
      ...server,
      "--run",
      "drawn",
      "-n",
      "16",
      "--rotate",
      "--player",
      `first=${own}`,
      ...opponents,
    );
    expect(players.first).toMatchObject({ episodes: 16, scored: 16 });
    const compared = await run("runs", "compare", "self", "drawn");
    expect(cells(compared.stdout)).toContain("role self drawn difference");
    await rollout("--run", "named", "--player", "first=oracle", "--player", "second=random", "--train", "second");
    expect(Object.entries((await trajectoriesOf("named"))[0]?.roles ?? {}).map(([role, { trainable }]) => [role, trainable])).toEqual([
      ["first", false],
      ["second", true],
    ]);
  });

  it("lets one agent play every role if no players are given, and plays a run again", async () => {
    expect((await rollout("--run", "oracles", "-n", "3", "--digests")).code).toBe(0);
    expect((await trajectoriesOf("oracles")).map(({ roles }) => roles?.first?.agent)).toEqual(Array(3).fill("oracle"));
    expect((await run("reproduce", "oracles", ...server)).stdout).toMatch(/3 of 3|equal/);
    await rollout("--run", "pair", "-n", "2", "--player", "first=oracle", "--player", "second=random");
    const again = await run("reproduce", "pair", ...server);
    expect(again.code).toBe(0);
    const replayed = await rollout("--run", "copied", "-n", "2", "--agent", "replay", "--replay-from", "pair");
    expect(replayed.code).toBe(0);
    const moves = async (name: string) =>
      (await trajectoriesOf(name)).map(({ steps }) => steps.map(({ role, call }) => [role, call.arguments]));
    expect(await moves("copied")).toEqual(await moves("pair"));
  });

  it.each([
    [
      ["--player", "first=oracle"],
      "the role 'second' has no player; its roles are first, second",
      "--player first=oracle --player second=oracle",
    ],
    [
      ["--player", "first=oracle", "--player", "black=oracle"],
      "the environment has no role 'black'",
      "--player first=oracle --player second=oracle",
    ],
    [
      ["--player", "first=oracle", "--player", "second=oracle", "--agent", "random"],
      "'--player <ROLE=AGENT>' cannot be used with option '-a, --agent <kind>'",
      "",
    ],
    [["--player", "first=oracle", "--model", "m"], "cannot be used with option '-m, --model <name>'", ""],
    [["--player", "first"], "Write ROLE=AGENT, such as white=oracle", ""],
    [["--player", "first=gpt"], "There is no agent 'gpt'", ""],
    [["--player", "first=openai"], "The agent 'openai' needs a model: openai:NAME", ""],
    [["--player", "first=command"], "The agent 'command' is a program, which cannot play a role", ""],
    [["--player", "first=oracle", "--player", "second=oracle", "--train", "third"], "--train names 'third', which has no --player", ""],
    [["--rotate"], "--rotate is for the players of roles", "Add: --player ROLE=AGENT"],
  ])("refuses %j and says why", async (argv, message, hint) => {
    const { code, stderr } = await rollout(...argv);
    expect([code, stderr.replaceAll(/\s+/g, " ")]).toEqual([2, expect.stringContaining(message)]);
    expect(stderr).toContain(hint);
  });

  it("says that an environment without roles has no players", async () => {
    const { code, stderr } = await run("rollout", echo, ...server, "--player", "white=oracle");
    expect([code, stderr]).toEqual([2, expect.stringContaining("the environment has no roles, so it is played by one agent")]);
  });
});
