import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newTurn } from "../fixtures/turn.ts";
import { costOfTurns } from "./prices.ts";

const tokens = fc.integer({ min: 0, max: 1_000_000 });
const price = fc.double({ min: 0, max: 100, noNaN: true });

describe("the cost of turns", () => {
  it("is the tokens times their prices, cached input at its own price", () => {
    const turns = [
      newTurn({ prompt_tokens: 1_000_000, completion_tokens: 500_000 }),
      newTurn({ prompt_tokens: 1_000_000, completion_tokens: 0, cached_tokens: 400_000 }),
    ];
    expect(costOfTurns(turns, { input: 2, output: 8, cached: 0.5 })).toBeCloseTo(2 + 4 + 1.2 + 0.2);
    expect(costOfTurns(turns, { input: 2, output: 8 })).toBeCloseTo(2 + 4 + 2);
  });

  it("is unknown, and not a part of it, when one turn has no usage", () => {
    expect(costOfTurns([newTurn(), newTurn({ prompt_tokens: null })], { input: 1, output: 1 })).toBeNull();
  });

  it("is the sum of the costs of its turns, and nothing without turns", () => {
    const turn = fc.record({ prompt_tokens: tokens, completion_tokens: tokens, cached_tokens: tokens }).map((own) => newTurn(own));
    fc.assert(
      fc.property(fc.array(turn), fc.record({ input: price, output: price, cached: price }), (turns, prices) => {
        const sum = turns.reduce((total, one) => total + (costOfTurns([one], prices) ?? Number.NaN), 0);
        expect(costOfTurns(turns, prices)).toBeCloseTo(sum, 6);
      }),
    );
  });
});
