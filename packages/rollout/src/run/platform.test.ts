import { join } from "node:path";
import type { Trajectory } from "@aenv/contract";
import { type Tree, temporaryTree } from "@aenv/testing";
import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { oracleAgent } from "../agents/scripted.ts";
import { playEpisode } from "../episode/play.ts";
import { instancesOn, playOptionsOf, runSettingsOf } from "../fixtures/run.ts";
import type { Agent } from "../player/agent.ts";
import { Concurrency } from "./concurrency.ts";
import { RunFolder } from "./folder.ts";
import { playRun } from "./run.ts";

describe("a run on a platform", () => {
  let platform: Platform;
  let tree: Tree;
  let environment: string;
  beforeAll(async () => {
    tree = temporaryTree();
    platform = await startPlatform();
    environment = await publish(platform, projects.echo, { isolation: "shared" });
  });
  afterAll(async () => {
    await platform?.close();
    tree?.[Symbol.dispose]();
  });

  async function run(name: string, agent: Agent, samples: number) {
    const cancel = new AbortController().signal;
    await using instances = instancesOn(platform, environment);
    const options = playOptionsOf(agent, instances, { cancel });
    const settings = runSettingsOf(environment, agent, { tasks: [{ id: "greet" }, { id: "be-brief" }, { id: "recall" }], samples });
    const folder = new RunFolder(join(tree.path, "runs"), name);
    const play = (spec: Parameters<typeof playEpisode>[0]) => playEpisode(spec, options);
    const result = await playRun({ folder, settings, concurrency: new Concurrency({ max: 8 }), retries: 0, play, cancel });
    const trajectories: Trajectory[] = [];
    for await (const one of folder.trajectories()) trajectories.push(one);
    return { ...result, trajectories };
  }

  it("scores every episode, on as many instances as run at once, and leaves none behind", async () => {
    const { summary, trajectories } = await run("oracle", oracleAgent(), 20);
    expect(summary).toMatchObject({ episodes: 60, scored: 60, reward: { mean: 1 }, passHatK: { 20: { value: 1, tasks: 3 } } });
    const made = {
      engine: "process",
      isolation: "shared",
      server_version: expect.any(String),
      reward_digest: expect.stringMatching(/^sha256:/),
    };
    for (const { provenance } of trajectories) expect(provenance).toMatchObject(made);
    const { items } = (await platform.demand("GET", "/env-instance/*/list")) as { items?: unknown[] };
    expect(items ?? []).toEqual([]);
  });

  it("gives the same trajectories again but for times and ids", async () => {
    const [one, other] = [await run("first", oracleAgent(), 2), await run("second", oracleAgent(), 2)];
    expect(comparable(other.trajectories)).toEqual(comparable(one.trajectories));
  });
});

/** Trajectories without what may differ between equal runs. */
function comparable(trajectories: readonly Trajectory[]) {
  const kept = trajectories.map(({ id, run: _, group, timing: __, steps, ...rest }) => ({
    ...rest,
    id: id.slice(id.indexOf("/")),
    group: group?.index,
    steps: steps.map(({ started_ms: ___, duration_ms: ____, ...step }) => step),
  }));
  return kept.sort((a, b) => (a.id < b.id ? -1 : 1));
}
