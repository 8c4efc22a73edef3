import { describe, expect, it } from "vitest";
import { newTrajectory } from "../fixtures/trajectory.ts";
import { preferencePairs } from "./preference.ts";

/** A trajectory of one group whose agent says its own reward. */
function said(reward: number | null) {
  const outcome =
    reward === null
      ? ({ kind: "unscored", cause: "model", stage: "play", retryable: true, message: "gone" } as const)
      : ({ kind: "scored", reward, components: {} } as const);
  const messages = [
    { role: "system" as const, content: "Be brief." },
    { role: "user" as const, content: "Hi." },
    { role: "assistant" as const, content: String(reward) },
  ];
  return newTrajectory({ outcome, messages });
}

function pairs(rewards: readonly (number | null)[], { minMargin = 0, perGroup = 10 } = {}) {
  const rows = preferencePairs(rewards.map(said), { minMargin, perGroup }) as {
    chosen: { content: string }[];
    rejected: { content: string }[];
  }[];
  return rows.map(({ chosen, rejected }) => [chosen[0]?.content, rejected[0]?.content]);
}

describe("preference pairs of a group", () => {
  it("begin with the best and the worst, and use each trajectory once", () => {
    expect(pairs([0.2, 1, 0, 0.8])).toEqual([
      ["1", "0"],
      ["0.8", "0.2"],
    ]);
    expect(pairs([0.2, 1, 0, 0.8], { perGroup: 1 })).toEqual([["1", "0"]]);
  });

  it("differ by the margin at least, and never have equal rewards", () => {
    expect(pairs([1, 0.8, 0.7, 0], { minMargin: 0.5 })).toEqual([["1", "0"]]);
    expect(pairs([1, 1, 1])).toEqual([]);
    expect(pairs([1])).toEqual([]);
  });

  it("leave unscored trajectories out", () => {
    expect(pairs([null, 1, null, 0.5])).toEqual([["1", "0.5"]]);
  });

  it("have the shared beginning as the prompt, and the tools as JSON text", () => {
    const [row] = preferencePairs([said(0), said(1)], { minMargin: 0, perGroup: 1 });
    expect(row).toMatchObject({
      prompt: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hi." },
      ],
      chosen: [{ role: "assistant", content: "1" }],
      rejected: [{ role: "assistant", content: "0" }],
      tools: expect.stringContaining('"echo"'),
    });
  });
});
