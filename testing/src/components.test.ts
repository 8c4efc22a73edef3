import { describe, expect, it } from "vitest";
import { type Component, components } from "./components.ts";

describe("the advice of every component", () => {
  it.each(Object.entries<Component>(components))("can be followed with the repository alone: %s", (_, { probe, get }) => {
    const advice = `${probe() ?? ""} ${get}`;
    expect(get).not.toBe("");
    expect(advice).not.toMatch(/\.\.\/|(?:^|\s)\/\w/);
  });
});
