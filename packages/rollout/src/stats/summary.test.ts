import { describe, expect, it } from "vitest";
import { newTrajectory } from "../fixtures/trajectory.ts";
import { type EpisodeScore, scoreOf, summarise } from "./summary.ts";

function scores(task: string, ...rewards: (number | null)[]): EpisodeScore[] {
  return rewards.map((reward) => ({ task, reward, cause: reward === null ? "sandbox" : null }));
}

describe("the summary of a run", () => {
  it("counts unscored episodes by cause and leaves them out of every number", () => {
    const summary = summarise([...scores("a", 1, null, 1), ...scores("b", 0, 0)], { passReward: 1 });
    expect(summary).toMatchObject({ episodes: 5, scored: 4, unscored: { sandbox: 1 }, reward: { mean: 0.5 } });
    expect(summary.tasks[0]).toMatchObject({ task: "a", episodes: 3, scored: 2, mean: 1, passes: 2 });
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
    expect(scoreOf(newTrajectory())).toEqual({ task: "greet", reward: 1, cause: null });
    expect(scoreOf(newTrajectory({ outcome: unscored }))).toEqual({ task: "greet", reward: null, cause: "model" });
  });

  it("says nothing where nothing was scored", () => {
    expect(summarise(scores("a", null), { passReward: 1 })).toMatchObject({ scored: 0, reward: null, passAtK: {}, passHatK: {} });
  });
});
