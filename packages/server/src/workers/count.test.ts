import { expect, it } from "vitest";
import { workersFor } from "./count.ts";
import { workerCount } from "./open.ts";

it("a small machine needs no workers, and a large one leaves most cores to sandboxes", () => {
  expect([1, 2, 4, 7, 8, 32, 64, 256].map(workersFor)).toEqual([1, 1, 1, 1, 2, 8, 16, 16]);
});

it("a program that cannot start workers serves the port itself, and refuses more", () => {
  expect(workerCount({ workers: null }, undefined)).toBe(1);
  expect(workerCount({ workers: 1 }, undefined)).toBe(1);
  expect(() => workerCount({ workers: 2 }, undefined)).toThrow("cannot start workers");
});
