import type { Turn } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergeTurns } from "./sequences.ts";

function turn(id: string, prompt: number[], completion: number[], version = "1"): Turn {
  return {
    node_id: id,
    completion_id: null,
    finish_reason: "stop",
    message: null,
    prompt_token_ids: prompt,
    completion_token_ids: completion,
    logprobs: completion.map((token) => -token / 10),
    weight_versions: [{ version, start: 0, end: completion.length }],
    prompt_tokens: prompt.length,
    completion_tokens: completion.length,
    started_ms: 0,
    duration_ms: 0,
  };
}

describe("the token sequences of an episode", () => {
  it("are one while every prompt extends what came before it", () => {
    expect(mergeTurns([turn("n0", [1, 2, 3], [4, 5]), turn("n1", [1, 2, 3, 4, 5, 6], [7], "2")])).toEqual([
      {
        prompt_length: 3,
        token_ids: [1, 2, 3, 4, 5, 6, 7],
        loss_mask: [0, 0, 0, 1, 1, 0, 1],
        logprobs: [0, 0, 0, -0.4, -0.5, 0, -0.7],
        weight_versions: [
          { version: "1", start: 3, end: 5 },
          { version: "2", start: 6, end: 7 },
        ],
        turns: ["n0", "n1"],
      },
    ]);
  });

  it("split where a prompt does not begin with the tokens held so far", () => {
    const sequences = mergeTurns([turn("n0", [1, 2], [3]), turn("n1", [1, 2, 9, 4], [5])]);
    expect(sequences.map(({ turns, prompt_length }) => ({ turns, prompt_length }))).toEqual([
      { turns: ["n0"], prompt_length: 2 },
      { turns: ["n1"], prompt_length: 4 },
    ]);
  });

  it("leave turns without tokens out", () => {
    const text = { ...turn("n0", [1], [2]), prompt_token_ids: null };
    expect(mergeTurns([text])).toEqual([]);
  });

  it("train each sampled token exactly once, with its own log-probability, and have arrays of one length", () => {
    const ids = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 4 });
    const episodes = fc.array(fc.record({ prompt: ids, tail: ids, completion: ids, drifts: fc.boolean() }), { maxLength: 6 });
    fc.assert(
      fc.property(episodes, (parts) => {
        let held: number[] = [];
        const turns = parts.map(({ prompt, tail, completion, drifts }, n) => {
          const whole = drifts || n === 0 ? prompt : [...held, ...tail];
          held = [...whole, ...completion];
          return turn(`n${n}`, whole, completion);
        });
        const sequences = mergeTurns(turns);
        const trained = sequences.flatMap(({ token_ids, loss_mask, logprobs }) =>
          token_ids.flatMap((id, at) => (loss_mask[at] === 1 ? [[id, logprobs[at]]] : [])),
        );
        expect(trained).toEqual(
          turns.flatMap(({ completion_token_ids, logprobs }) => (completion_token_ids ?? []).map((id, at) => [id, logprobs?.[at]])),
        );
        for (const one of sequences)
          expect([one.loss_mask.length, one.logprobs.length]).toEqual([one.token_ids.length, one.token_ids.length]);
      }),
    );
  });
});
