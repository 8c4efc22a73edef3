import { describe, expect, it } from "vitest";
import { EnvironmentError } from "../errors/errors.ts";
import { toReward } from "./score.ts";

describe("toReward", () => {
  it.each([
    [0.5, { reward: 0.5, components: {} }],
    [0, { reward: 0, components: {} }],
    [true, { reward: 1, components: {} }],
    [false, { reward: 0, components: {} }],
    [
      { reward: 2, components: { a: 1, b: 1 } },
      { reward: 2, components: { a: 1, b: 1 } },
    ],
    [
      { reward: -1, note: "kept out" },
      { reward: -1, components: {} },
    ],
    [
      { reward: 2, components: { a: 1 }, weights: { a: 2 } },
      { reward: 2, components: { a: 1 }, weights: { a: 2 } },
    ],
    [
      { reward: 2, weights: null },
      { reward: 2, components: {} },
    ],
    [
      { reward: 2, weights: ["an author's own field"] },
      { reward: 2, components: {} },
    ],
    [{ score: 0.25 }, { reward: 0.25, components: {} }],
  ])("reads %j", (data, expected) => {
    expect(toReward(data, "shop")).toEqual(expected);
  });

  it.each([
    null,
    undefined,
    "1",
    "",
    [],
    [1],
    {},
    { reward: "1" },
    { reward: null },
    { reward: true },
    { reward: 1, components: { a: "x" } },
    { points: 1 },
  ])("throws for %j and never makes it 0", (data) => {
    expect(() => toReward(data, "shop")).toThrow(EnvironmentError);
    expect(() => toReward(data, "shop")).toThrow(/the reward of 'shop' is .*; it must be a number/);
  });
});
