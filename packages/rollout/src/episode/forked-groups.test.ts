import { PlatformError, type Trajectory } from "@aenv/contract";
import { type Tree, temporaryTree } from "@aenv/testing";
import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { randomAgent } from "../agents/random.ts";
import { noopAgent, scriptedAgent } from "../agents/scripted.ts";
import { instancesOn, playOptionsOf, runSettingsOf } from "../fixtures/run.ts";
import { readJournal } from "../journal/journal.ts";
import type { TurnAgent } from "../player/agent.ts";
import { replay } from "../replay/replay.ts";
import { Concurrency } from "../run/concurrency.ts";
import { RunFolder } from "../run/folder.ts";
import { playRun, type RunOptions } from "../run/run.ts";
import { Episode } from "./episode.ts";
import { ForkedGroups } from "./forked-groups.ts";
import type { InstancePool } from "./instance-pool.ts";
import type { EpisodeSpec, PlayOptions } from "./play.ts";

const never = new AbortController().signal;
const now = () => performance.now();

describe("forks on a platform", () => {
  let platform: Platform;
  let tree: Tree;
  let environment: string;
  let instances: InstancePool;
  beforeAll(async () => {
    tree = temporaryTree();
    platform = await startPlatform();
    environment = await publish(platform, projects.echo, { isolation: "shared" });
    instances = instancesOn(platform, environment);
  });
  afterAll(async () => {
    await instances?.close();
    await platform?.close();
    tree?.[Symbol.dispose]();
  });

  async function run(
    name: string,
    agent: TurnAgent,
    forkAt: number,
    { of = {}, ...own }: Partial<RunOptions> & { of?: Partial<PlayOptions> } = {},
  ) {
    const tasks = [{ id: "greet" }, { id: "recall" }];
    const settings = runSettingsOf(environment, agent, { tasks, samples: 3, fork_at: forkAt });
    await using forks = new ForkedGroups(playOptionsOf(agent, instances, { costOf: (turns) => turns.length, ...of }), forkAt);
    const folder = new RunFolder(tree.path, name);
    const common = { folder, settings, concurrency: new Concurrency({ max: 4 }), retries: 1, cancel: never };
    const onDone: RunOptions["onDone"] = (planned) => forks.done(planned);
    const result = await playRun({ ...common, onDone, ...own, play: (spec) => forks.play(spec) });
    const trajectories: Trajectory[] = [];
    for await (const one of folder.trajectories()) trajectories.push(one);
    return { ...result, folder, trajectories: trajectories.sort((a, b) => (a.id < b.id ? -1 : 1)) };
  }

  const callsOf = ({ steps }: Trajectory) => steps.map(({ call }) => [call.name, call.arguments]);

  it("have their first calls in common, stored once, go on by themselves, and replay equal", async () => {
    const { summary, folder, trajectories } = await run("random", randomAgent({ calls: 5 }), 2);
    expect(summary).toMatchObject({ episodes: 6, scored: 6 });
    for (const group of Map.groupBy(trajectories, (one) => one.group?.id).values()) {
      expect(group.map(({ parent }) => parent?.steps)).toEqual([2, 2, 2]);
      expect(new Set(group.map(({ parent }) => parent?.id)).size).toBe(1);
      expect(new Set(group.map(({ seed }) => seed)).size).toBe(1);
      expect(new Set(group.map((one) => JSON.stringify(callsOf(one).slice(0, 2)))).size).toBe(1);
      expect(new Set(group.map((one) => JSON.stringify(callsOf(one)))).size).toBe(3);
    }
    const types: unknown[] = [];
    for await (const { record } of readJournal(folder.trajectoriesPath)) types.push(record.type);
    expect(types.filter((type) => type === "prefix")).toHaveLength(2);
    for (const one of trajectories.slice(0, 2)) {
      const lease = await instances.acquire(one, never);
      expect(await replay(one, { instance: lease.instance, signal: never, now })).toEqual({ kind: "equal", steps: 5 });
      await lease.release(true);
    }
    await instances.close();
    expect(await platform.demand("GET", "/env-instance/*/list")).toEqual([]);
  });

  it("of an episode that ends before the step are all like it", async () => {
    const { trajectories } = await run("noop", noopAgent(), 3);
    expect(trajectories).toHaveLength(6);
    for (const one of trajectories) expect(one).toMatchObject({ outcome: { reward: 0 }, stop_reason: "done", parent: { steps: 0 } });
  });

  it("are unscored when what they have in common cannot be played, and try again", async () => {
    let starts = 0;
    const acquire: PlayOptions["acquire"] = (spec, signal) => {
      if (++starts === 1) throw new Error("the sandbox is gone");
      return instances.acquire(spec, signal);
    };
    const { summary } = await run("flaky", noopAgent(), 0, { of: { acquire } });
    expect(summary).toMatchObject({ scored: 6 });
    const broken = await run("broken", noopAgent(), 0, { of: { acquire: () => Promise.reject(new Error("the sandbox is gone")) } });
    expect(broken.summary).toMatchObject({ episodes: 6, scored: 0, unscored: { sandbox: 6 }, reward: null });
    expect(broken.trajectories.every(({ parent }) => parent === null)).toBe(true);
  });

  it("of a trunk whose instance is lost share the next one, however late each of them fails", async () => {
    let starts = 0;
    const { promise: next, resolve: onNext } = Promise.withResolvers<void>();
    const acquire: PlayOptions["acquire"] = async (spec, signal) => {
      const lease = await instances.acquire(spec, signal);
      if (spec.task.id !== "greet") return lease;
      if (++starts > 1) onNext();
      else {
        let forks = 0;
        // The first sample fails at once. The others fail when it has begun another trunk.
        const fork = async () => {
          if (++forks > 1) await next;
          throw new PlatformError("instance.gone", "the instance is gone");
        };
        Object.assign(lease.instance, { fork });
      }
      return lease;
    };
    expect((await run("lost", noopAgent(), 0, { of: { acquire } })).summary).toMatchObject({ episodes: 6, scored: 6 });
    expect(starts).toBe(2);
  });

  it("are unscored by the agent when it throws before the fork", async () => {
    const agent: TurnAgent = {
      name: "thrower",
      settings: {},
      begin: () => ({ next: () => Promise.reject(new Error("out of ideas")), copy: () => never as never }),
    };
    const { trajectories } = await run("thrower", agent, 1);
    for (const { outcome } of trajectories)
      expect(outcome).toMatchObject({ kind: "unscored", cause: "agent", retryable: false, message: "out of ideas" });
  });

  it("of a group that a stop has cut are played again from one trunk", async () => {
    const stop = new AbortController();
    let done = 0;
    const onDone = () => {
      if (++done === 2) stop.abort();
    };
    const first = await run("cut", randomAgent({ calls: 3 }), 1, {
      concurrency: new Concurrency({ max: 1 }),
      cancel: stop.signal,
      onDone,
      of: { cancel: stop.signal },
    });
    expect(first).toMatchObject({ isComplete: false, summary: { episodes: 2 } });
    const second = await run("cut", randomAgent({ calls: 3 }), 1);
    expect(second).toMatchObject({ isComplete: true, resumed: 0, summary: { episodes: 6, scored: 6 } });
    expect(new Set(second.trajectories.map(({ id }) => id)).size).toBe(6);
  });

  it("search a tree from code: each branch goes on from the same state", async () => {
    const spec: Pick<EpisodeSpec, "task" | "seed"> = { task: { id: "greet", split: null, index: null }, seed: 7 };
    const { instance, release } = await instances.acquire(spec, never);
    const begun = { instance, task: "greet", seed: 7, limits: {}, signal: never, recordsDigests: false, now };
    const root = await Episode.begin(begun);
    const branches = await root.fork(2);
    const rewards: number[] = [];
    for (const [index, branch] of branches.entries()) {
      const actions = [{ tool: "echo", arguments: { text: index === 0 ? "hello" : "wrong" } }];
      await branch.play(
        await scriptedAgent(actions).begin({ task: { id: "greet", instruction: null }, tools: [], seed: 0, oracle: async () => null }),
      );
      const outcome = await branch.score();
      if (outcome.kind === "scored") rewards.push(outcome.reward);
      await branch.instance.release();
    }
    expect(rewards[0]).toBeGreaterThan(rewards[1] ?? 1);
    expect(root.record.steps).toEqual([]);
    await release(false);
  });
});
