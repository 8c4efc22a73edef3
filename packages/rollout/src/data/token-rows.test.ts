import { describe, expect, it } from "vitest";
import { newTrajectory } from "../fixtures/trajectory.ts";
import { newTurn } from "../fixtures/turn.ts";
import { tokenRows } from "./token-rows.ts";

const turns = [
  newTurn({ prompt_token_ids: [1, 2], completion_token_ids: [3], weight_versions: [{ version: "9", start: 0, end: 1 }] }),
  newTurn({ prompt_token_ids: [1, 2, 3, 4], completion_token_ids: [5], weight_versions: [{ version: "10", start: 0, end: 1 }] }),
];

describe("the token rows of a trajectory", () => {
  it("have one mask and one log-probability a token, and the versions of the weights in order of number", () => {
    expect(tokenRows(newTrajectory({ turns }))).toEqual([
      {
        input_ids: [1, 2, 3, 4, 5],
        loss_mask: [0, 0, 1, 0, 1],
        logprobs: [0, 0, -0.5, 0, -0.5],
        prompt_length: 2,
        reward: 1,
        scored: true,
        group_id: "g",
        rollout_id: "t",
        weight_version_min: "9",
        weight_version_max: "10",
      },
    ]);
  });

  it("of an unscored one have no reward and nothing to train on", () => {
    const outcome = { kind: "unscored", cause: "timeout", stage: "play", retryable: true, message: "late" } as const;
    expect(tokenRows(newTrajectory({ turns, outcome, group: null }))).toMatchObject([
      { reward: null, scored: false, loss_mask: [0, 0, 0, 0, 0], group_id: "t" },
    ]);
  });

  it("are none, with the reason, if the endpoint gave no tokens", () => {
    expect(tokenRows(newTrajectory({ turns: [newTurn()] }))).toBe("no token ids");
  });
});
