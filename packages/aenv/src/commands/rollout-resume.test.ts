import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, realpathSync, watch } from "node:fs";
import { join } from "node:path";
import { RunFolder } from "@aenv/rollout";
import { components, type ModelRequest, type ScriptedOpenAi, scriptedOpenAi, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Platform, projects, publish, startPlatform } from "../platform-tests/platform.ts";
import { processesOf } from "../platform-tests/processes.ts";
import { aenv } from "../testing/cli.ts";
import { RunningCommand } from "../testing/command.ts";

const SAMPLES = 4;
const EPISODES = 3 * SAMPLES;
/** Each episode asks the model twice. */
const REQUESTS = 2 * EPISODES;

describe("a rollout that is stopped at any point", { timeout: 300_000 }, () => {
  let platform: Platform;
  let model: ScriptedOpenAi;
  let expected: unknown[];
  /** Called with every request to the model, before it is answered. */
  let onRequest = () => {};
  beforeAll(async () => {
    platform = await startPlatform({ store: "memory:" });
    await publish(platform, projects.echo, { isolation: "shared" });
    model = await scriptedOpenAi(
      ({ turn }: ModelRequest) => {
        onRequest();
        return turn === 0 ? { toolCalls: [{ id: "call", name: "echo", arguments: { text: "hello" } }] } : "Done.";
      },
      { keepsRequests: false },
    );
    using tree = temporaryTree();
    expected = await playToTheEnd(tree.path);
  });
  afterAll(async () => {
    await model?.close();
    await platform?.close();
  });

  function line(): string[] {
    const agent = ["--agent", "openai", "--model", "m", "--base-url", model.baseUrl, "--model-key", "k"];
    const samples = ["-n", String(SAMPLES), "-c", "4", "--run", "run", "--json"];
    return ["rollout", "echo-shared@1.0.0", "--system-url", platform.controlUrl, ...samples, ...agent];
  }

  /** Starts the command and sends it the signal as soon as the model has been asked so many times. */
  async function stopAfter(requests: number, signal: NodeJS.Signals, cwd: string) {
    let left = requests;
    await using command = new RunningCommand(line(), { cwd });
    onRequest = () => {
      if (--left === 0) command.child.kill(signal);
    };
    return await command.ended();
  }

  /** Only what is killed needs a process of its own; the same line is played to its end in this one. */
  async function playToTheEnd(cwd: string): Promise<unknown[]> {
    onRequest = () => {};
    const { code, stdout, stderr } = await aenv(line(), { cwd });
    expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toMatchObject({ isComplete: true, episodes: EPISODES, scored: EPISODES });
    return episodesIn(cwd);
  }

  it.each(Array.from({ length: 20 }, (_, seed) => seed))("by kill -9 has the same episodes when it is resumed, seed %i", async (seed) => {
    using tree = temporaryTree();
    // 7 and 23 have no common factor, so that 20 seeds are 20 places, from the first request to the last but one.
    await stopAfter(1 + ((seed * 7) % (REQUESTS - 1)), "SIGKILL", tree.path);
    expect(await playToTheEnd(tree.path)).toEqual(expected);
  });

  it.each([".gz", "summary.json"])(
    "by kill -9 after its last episode, when a file *%s appears, is complete when it is resumed",
    async (end) => {
      using tree = temporaryTree({ "runs/run/.keep": "" });
      onRequest = () => {};
      await using command = new RunningCommand(line(), { cwd: tree.path });
      let isSeen = false;
      const changes = watch(join(tree.path, "runs/run"), (_, name) => {
        if (!name?.includes(end)) return;
        isSeen = true;
        command.child.kill("SIGKILL");
      });
      await command.ended();
      changes.close();
      expect(isSeen).toBe(true);
      expect(await playToTheEnd(tree.path)).toEqual(expected);
    },
  );

  it.each([1, 9, 17])("by Ctrl-C ends cleanly, and has the same episodes when it is resumed, after %i requests", async (requests) => {
    using tree = temporaryTree();
    const before = await instances();
    expect(await stopAfter(requests, "SIGINT", tree.path)).toMatchObject({ code: 130 });
    expect(existsSync(join(tree.path, "runs/run/lock"))).toBe(false);
    expect(await instances()).toEqual(before);
    expect(await playToTheEnd(tree.path)).toEqual(expected);
  });

  it("by kill -9 leaves no process of its own server, and the next one removes its files and control groups", async () => {
    using tree = temporaryTree();
    using temporary = temporaryTree();
    const agent = ["--agent", "openai", "--model", "m", "--base-url", model.baseUrl, "--run", "run"];
    await using command = new RunningCommand(["rollout", "echo", ...agent], { cwd: tree.path, env: { TMPDIR: temporary.path } });
    onRequest = () => command.child.kill("SIGKILL");
    await command.ended();
    onRequest = () => {};
    const [home = "none"] = readdirSync(temporary.path);
    expect(home).toMatch(/^aenv-rollout-\d+-/);
    await vi.waitUntil(() => processesOf(join(temporary.path, home)).length === 0, { timeout: 30_000 });
    const groups = () => groupsOf(join(realpathSync(temporary.path), home));
    // Where the process of this test can create some, the command could too.
    expect(groups().length > 0).toBe(components["control-groups"].probe() === null);
    await using next = new RunningCommand(["rollout", "echo", ...agent], { cwd: tree.path, env: { TMPDIR: temporary.path } });
    expect(await next.ended()).toMatchObject({ code: 0 });
    expect([readdirSync(temporary.path), groups()]).toEqual([[], []]);
  });

  async function instances(): Promise<unknown[]> {
    const listed = (await platform.demand("GET", "/env-instance/*/list")) as { id: string }[];
    return listed.map(({ id }) => id).sort();
  }
});

/** Folders of control groups of the plain sandboxes in a home. */
function groupsOf(home: string): string[] {
  const key = createHash("sha256").update(join(home, "sandboxes")).digest("hex").slice(0, 16);
  const { stdout } = spawnSync("find", ["/sys/fs/cgroup", "-type", "d", "-name", `aenv-${key}`], { encoding: "utf8" });
  return stdout.split("\n").filter(Boolean);
}

/** The trajectories of the run by id, without what may differ between equal runs: times, and the numbers of the model's answers. */
async function episodesIn(cwd: string): Promise<unknown[]> {
  const found: { id: string }[] = [];
  for await (const { timing: _, steps, turns, ...rest } of new RunFolder(join(cwd, "runs"), "run").trajectories()) {
    found.push({
      ...rest,
      steps: steps.map((step) => ({ ...step, started_ms: 0, duration_ms: 0 })),
      turns: turns.map((turn) => ({ ...turn, completion_id: null, started_ms: 0, duration_ms: 0 })),
    } as { id: string });
  }
  return found.sort((one, other) => (one.id < other.id ? -1 : 1));
}
