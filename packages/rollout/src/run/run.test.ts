import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { Trajectory } from "@aenv/contract";
import { type Tree, temporaryTree } from "@aenv/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { seededRandom } from "../agents/random-value.ts";
import type { EpisodeSpec } from "../episode/play.ts";
import { newTrajectory } from "../fixtures/trajectory.ts";
import { Concurrency } from "./concurrency.ts";
import { listRuns, RunFolder } from "./folder.ts";
import { planEpisodes } from "./plan.ts";
import { playRun, type RunOptions } from "./run.ts";
import type { RunSettings } from "./settings.ts";

const settings: RunSettings = {
  format: "aenv.run.v1",
  environment: "echo@1.0.0",
  environment_digest: null,
  variables: {},
  agent: { name: "scripted", settings: {} },
  model: null,
  split: null,
  tasks: [{ id: "a" }, { id: "b", split: "train" }, { id: "c" }],
  samples: 4,
  seed: 7,
  limits: {},
  records_digests: false,
  pass_reward: 1,
};
const unscored = { kind: "unscored", cause: "sandbox", stage: "play", retryable: true, message: "the sandbox is gone" } as const;

/** Plays at once: the reward is the sample's number. */
async function play(spec: EpisodeSpec): Promise<Trajectory> {
  await setImmediate();
  const { id, run, attempt, task, group, seed } = spec;
  return newTrajectory({ id, run, attempt, task, group, seed, outcome: { kind: "scored", reward: group?.index ?? 0, components: {} } });
}

describe("a run", () => {
  let tree: Tree;
  beforeEach(() => {
    tree = temporaryTree();
  });
  afterEach(() => tree[Symbol.dispose]());

  function options(own: Partial<RunOptions> = {}): RunOptions {
    const folder = new RunFolder(tree.path, "run");
    return { folder, settings, concurrency: new Concurrency({ max: 3 }), retries: 0, play, cancel: new AbortController().signal, ...own };
  }

  async function stored(): Promise<Trajectory[]> {
    const found: Trajectory[] = [];
    for await (const one of new RunFolder(tree.path, "run").trajectories()) found.push(one);
    return found;
  }

  it("whose settings cannot be read is named, with what to do", async () => {
    await playRun(options());
    for (const text of ["{", "{}"]) {
      writeFileSync(join(tree.path, "run", "run.json"), text);
      const message = expect.stringMatching(/run\.json cannot be read: .*delete the run's folder$/s);
      expect(() => listRuns(tree.path)).toThrow(expect.objectContaining({ code: "store.damaged", message }));
    }
  });

  it("plays every sample of every task exactly once and keeps its trajectory", async () => {
    const { summary, isComplete } = await playRun(options());
    expect(isComplete).toBe(true);
    expect(summary).toMatchObject({ episodes: 12, scored: 12, reward: { mean: 1.5 } });
    const ids = (await stored()).map(({ id }) => id).sort();
    expect(ids).toEqual([0, 1, 2].flatMap((task) => [0, 1, 2, 3].map((sample) => `run/${task}-${sample}`)).sort());
    expect(listRuns(tree.path).map(({ name }) => name)).toEqual(["run"]);
  });

  it("begins with the first sample of every task", async () => {
    const order: string[] = [];
    await playRun(
      options({
        concurrency: new Concurrency({ max: 1 }),
        play: (spec) => play(spec).finally(() => order.push(`${spec.task.id}${spec.group?.index}`)),
      }),
    );
    expect(order).toEqual(["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"]);
  });

  it("never runs more episodes at once than it may", async () => {
    let running = 0;
    let most = 0;
    const counted = async (spec: EpisodeSpec) => {
      most = Math.max(most, ++running);
      const trajectory = await play(spec);
      running--;
      return trajectory;
    };
    await playRun(options({ play: counted }));
    expect(most).toBe(3);
  });

  it("tries again what was unscored and may pass, and keeps the last attempt with what all have cost", async () => {
    const flaky = async (spec: EpisodeSpec) => ({ ...(await play(spec)), cost: 0.5, ...(spec.attempt < 2 && { outcome: unscored }) });
    const { summary } = await playRun(options({ retries: 2, play: flaky }));
    expect(summary).toMatchObject({ scored: 12, cost: { total: 18, episodes: 12 } });
    const usage = { prompt_tokens: 20, completion_tokens: 4, cached_tokens: 0 };
    const last = { attempt: 2, cost: 0.5, earlier_attempts: { attempts: 2, usage, cost: 1 } };
    expect(await stored()).toEqual(Array.from({ length: 12 }, () => expect.objectContaining(last)));
  });

  it("tries again as often as its cause is allowed", async () => {
    const lost = async (spec: EpisodeSpec) => ({ ...(await play(spec)), outcome: unscored });
    await playRun(options({ retries: 1, retriesOf: { sandbox: 3, model: 0 }, play: lost }));
    expect(new Set((await stored()).map(({ attempt }) => attempt))).toEqual(new Set([3]));
  });

  it("plays again what was unscored in a complete run, and nothing else", async () => {
    const isLost = ({ id }: EpisodeSpec) => id.endsWith("-1");
    const lossy = async (spec: EpisodeSpec) => ({ ...(await play(spec)), ...(isLost(spec) && { outcome: unscored }) });
    expect(await playRun(options({ play: lossy }))).toMatchObject({ isComplete: true, summary: { scored: 9 } });
    const again: string[] = [];
    const counted = (spec: EpisodeSpec) => {
      again.push(spec.id);
      return play(spec);
    };
    const result = await playRun(options({ play: counted, playsUnscoredAgain: true }));
    expect(result).toMatchObject({ isComplete: true, resumed: 9, summary: { episodes: 12, scored: 12, unscored: {} } });
    expect(again.sort()).toEqual(["run/0-1", "run/1-1", "run/2-1"]);
    expect(new RunFolder(tree.path, "run").summary()).toMatchObject({ scored: 12 });
    expect(await stored()).toHaveLength(12);
    expect(await playRun(options({ play: counted, playsUnscoredAgain: true }))).toMatchObject({ resumed: 12 });
  });

  it("keeps an episode unscored when all attempts failed, and never turns it into a number", async () => {
    const { summary } = await playRun(options({ retries: 1, play: async (spec) => ({ ...(await play(spec)), outcome: unscored }) }));
    expect(summary).toMatchObject({ episodes: 12, scored: 0, unscored: { sandbox: 12 }, reward: null });
  });

  it("goes on where it was cancelled, without playing anything twice", async () => {
    const random = seededRandom(3);
    const counts = new Map<string, number>();
    for (let round = 0; ; round++) {
      const cancel = new AbortController();
      const some = async (spec: EpisodeSpec) => {
        if (random() < 0.3) cancel.abort();
        const trajectory = await play(spec);
        if (cancel.signal.aborted) return { ...trajectory, outcome: { ...unscored, cause: "cancelled" as const } };
        counts.set(spec.id, (counts.get(spec.id) ?? 0) + 1);
        return trajectory;
      };
      const { isComplete } = await playRun(options({ play: some, cancel: cancel.signal }));
      if (isComplete) break;
      expect(round).toBeLessThan(100);
    }
    expect([...counts.values()]).toEqual(Array.from({ length: 12 }, () => 1));
    expect(await stored()).toHaveLength(12);
  });

  it("gives every episode the same seed each time, and no two the same", async () => {
    await playRun(options());
    const seeds = (await stored()).map(({ id, seed }) => [id, seed]);
    expect(new Set(seeds.map(([, seed]) => seed)).size).toBe(12);
    using other = temporaryTree();
    const again = new RunFolder(other.path, "run");
    await playRun(options({ folder: again }));
    const others: unknown[] = [];
    for await (const { id, seed } of again.trajectories()) others.push([id, seed]);
    expect(others.sort()).toEqual(seeds.sort());
  });

  it("refuses to go on with other settings, and names the one that differs", async () => {
    await playRun(options());
    await expect(playRun(options({ settings: { ...settings, samples: 5 } }))).rejects.toMatchObject({
      code: "request.conflict",
      message: "run 'run' was begun with samples = 4, not 5; use the same settings to go on with it, or another name for a new run",
    });
  });

  it("ends what it plays, and keeps it, when its plan cannot be read any further", async () => {
    const { promise: held, resolve: endHeld } = Promise.withResolvers<void>();
    async function* plan() {
      yield* planEpisodes({ run: "run", ...settings, samples: 1 });
      // After the runner has begun the last of them.
      setTimeout(endHeld);
      throw new Error("the journal is damaged");
    }
    const slow = async (spec: EpisodeSpec) => {
      await held;
      return play(spec);
    };
    await expect(playRun(options({ play: slow, episodes: { total: 12, plan: plan() } }))).rejects.toThrow("the journal is damaged");
    expect(await stored()).toHaveLength(3);
  });

  it("passes on what stops it, such as a full disk, and can go on afterwards", async () => {
    let calls = 0;
    const broken = async (spec: EpisodeSpec) => {
      if (++calls === 5) throw new Error("no space left");
      return play(spec);
    };
    await expect(playRun(options({ play: broken }))).rejects.toThrow("no space left");
    expect(await playRun(options())).toMatchObject({ isComplete: true, summary: { episodes: 12 } });
  });
});
