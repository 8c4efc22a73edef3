import { expect, it } from "vitest";
import { joined, once } from "./once.ts";

it("work that is done once is repeated only after it has failed", async () => {
  let count = 0;
  const get = once(async () => {
    if (++count === 1) throw new Error("the first fails");
    return count;
  });
  await expect(Promise.all([get(), get()])).rejects.toThrow("the first fails");
  expect(await Promise.all([get(), get()])).toEqual([2, 2]);
  expect(await get()).toBe(2);
});

it("work that is joined is done again by a caller that comes after its end", async () => {
  let count = 0;
  const get = joined(async () => ++count);
  expect(await Promise.all([get(), get()])).toEqual([1, 1]);
  expect(await get()).toBe(2);
});
