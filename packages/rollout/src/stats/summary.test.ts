import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newTrajectory } from "../fixtures/trajectory.ts";
import { type EpisodeScore, scoreOf, summarise } from "./summary.ts";

function scores(task: string, ...rewards: (number | null)[]): EpisodeScore[] {
  return rewards.map((reward) => ({
    task,
    reward,
    cause: reward === null ? "sandbox" : null,
    components: {},
    cost: null,
    tokens: 0,
    totalMs: 1_000,
  }));
}

describe("the summary of a run", () => {
  it("counts unscored episodes by cause and leaves them out of every number", () => {
    const summary = summarise([...scores("a", 1, null, 1), ...scores("b", 0, 0)], { passReward: 1 });
    expect(summary).toMatchObject({ episodes: 5, scored: 4, unscored: { sandbox: 1 }, reward: { mean: 0.5 } });
    expect(summary.tasks[0]).toMatchObject({ task: "a", episodes: 3, scored: 2, mean: 1, passes: 2 });
  });

  it("has the same numbers without its unscored episodes and in any order, and counts every episode once", () => {
    const one = fc.record({
      task: fc.constantFrom("a", "b", "c", "d"),
      reward: fc.option(fc.constantFrom(0, 0.25, 1), { nil: null }),
      cause: fc.constantFrom("sandbox" as const, "model" as const, "environment" as const),
    });
    const episodes = fc.array(one, { maxLength: 40 });
    const shuffled = episodes.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })));
    fc.assert(
      fc.property(shuffled, ([all, mixed]) => {
        const summaryOf = (some: typeof all) =>
          summarise(
            some.map(({ task, reward, cause }) => ({
              task,
              reward,
              cause: reward === null ? cause : null,
              components: reward === null ? {} : { [task]: reward, all: reward / 3 },
              cost: null,
              tokens: 0,
              totalMs: 1,
            })),
            { passReward: 1 },
          );
        const [whole, other, scored] = [summaryOf(all), summaryOf(mixed), summaryOf(all.filter(({ reward }) => reward !== null))];
        expect(other).toEqual(whole);
        for (const part of ["scored", "reward", "components", "passAtK", "passHatK"] as const) expect(whole[part]).toEqual(scored[part]);
        expect(whole.scored + Object.values(whole.unscored).reduce((sum, count) => sum + count, 0)).toBe(all.length);
        expect(whole.tasks.reduce((sum, task) => sum + task.episodes, 0)).toBe(all.length);
      }),
    );
  });

  it("has the mean of each component over the scored episodes that report it", () => {
    const [first] = scores("a", 1);
    const episodes = [
      { ...first, components: { tests: 1, style: 0.5 } },
      { ...first, components: { tests: 0 } },
      { ...first, reward: null, cause: "sandbox", components: {} },
    ] as EpisodeScore[];
    expect(summarise(episodes, { passReward: 1 }).components).toEqual({
      style: { mean: 0.5, episodes: 1 },
      tests: { mean: 0.5, episodes: 2 },
    });
  });

  it("estimates pass@k and pass^k over the tasks that have k scored samples", () => {
    const summary = summarise([...scores("a", 1, 1, 0), ...scores("b", 1)], { passReward: 1 });
    expect(summary.passAtK[1]?.value).toBeCloseTo((2 / 3 + 1) / 2, 12);
    expect(summary.passAtK[3]).toEqual({ value: 1, tasks: 1 });
    expect(summary.passHatK[2]?.value).toBeCloseTo(1 / 3, 12);
    expect(summary.passHatK[2]?.tasks).toBe(1);
  });

  it("is made of trajectories", () => {
    const unscored = { kind: "unscored", cause: "model", stage: "play", retryable: true, message: "gone" } as const;
    const common = { task: "greet", tokens: 12, totalMs: 5 };
    expect(scoreOf(newTrajectory({ cost: 0.5 }))).toMatchObject({ ...common, reward: 1, cause: null, components: {}, cost: 0.5 });
    expect(scoreOf(newTrajectory({ outcome: unscored }))).toEqual({ ...common, reward: null, cause: "model", components: {}, cost: null });
    const earlier = { attempts: 2, usage: { prompt_tokens: 5, completion_tokens: 3, cached_tokens: 0 }, cost: 0.25 };
    expect(scoreOf(newTrajectory({ cost: 0.5, earlier_attempts: earlier }))).toMatchObject({ cost: 0.75, tokens: 20 });
    expect(scoreOf(newTrajectory({ earlier_attempts: { ...earlier, cost: null } }))).toMatchObject({ cost: null, tokens: 20 });
  });

  it("adds up what episodes cost, unscored ones too, and divides it by those that passed", () => {
    const [passed, failed, lost] = scores("a", 1, 0, null) as [EpisodeScore, EpisodeScore, EpisodeScore];
    const summary = summarise([{ ...passed, cost: 0.5 }, { ...failed, cost: 0.25 }, { ...lost, cost: 0.25 }, passed], { passReward: 1 });
    expect(summary.cost).toEqual({ total: 1, episodes: 3, perPass: 1 });
    expect(summarise([{ ...failed, cost: 0.25 }], { passReward: 1 }).cost).toEqual({ total: 0.25, episodes: 1, perPass: null });
    expect(summarise([passed], { passReward: 1 }).cost).toBeNull();
  });

  it("says how long scored episodes took, with times that were measured", () => {
    const timed = Array.from({ length: 100 }, (_, at) => ({ ...(scores("a", 1)[0] as EpisodeScore), totalMs: (100 - at) * 1_000 }));
    const lost = scores("a", null).map((one) => ({ ...one, totalMs: 1e9 }));
    expect(summarise([...timed, ...lost], { passReward: 1 }).seconds).toEqual({ median: 50, p95: 95 });
    expect(summarise(lost, { passReward: 1 }).seconds).toBeNull();
  });

  it("says nothing where nothing was scored", () => {
    expect(summarise(scores("a", null), { passReward: 1 })).toMatchObject({ scored: 0, reward: null, passAtK: {}, passHatK: {} });
  });
});
