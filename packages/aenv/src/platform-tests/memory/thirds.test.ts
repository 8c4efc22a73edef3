import { expect, it } from "vitest";
import { mediansOfThirds } from "./thirds.ts";

it("are those of each third, also if the samples cannot be divided by three", () => {
  expect(mediansOfThirds([9, 1, 2, 30, 20, 20, 5, 6, 7])).toEqual([2, 20, 6]);
  expect(mediansOfThirds([1, 3, 10, 20])).toEqual([1, 6.5, 20]);
  expect(mediansOfThirds([1, 3, 10, 20, 30])).toEqual([2, 10, 25]);
});

it("do not move with one sample of a burst", () => {
  expect(mediansOfThirds([5, 5, 5, 5, 900, 5, 5, 5, 5])).toEqual([5, 5, 5]);
});

it("need three samples", () => {
  expect(() => mediansOfThirds([1, 2])).toThrow("2 samples have no thirds");
});
