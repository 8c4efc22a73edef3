import { expect, it } from "vitest";
import { containersOf, killContainers } from "./containers.ts";

it("finds no process of a pod that does not exist, and refuses what is no uid", () => {
  expect(containersOf("00000000-0000-4000-8000-000000000000")).toEqual([]);
  expect(() => containersOf("")).toThrow("'' is not the uid of a pod");
  expect(() => containersOf("00000000")).toThrow("is not the uid of a pod");
  expect(killContainers("00000000-0000-4000-8000-000000000000")).toBe(false);
});
