import { describe, expect, it } from "vitest";
import { assertChosen } from "./task-choice.ts";

const tasks = [{ id: "keyboard", split: "train" }, { id: "mouse", splits: ["train", "test"] }, { id: "screen" }];

function hintOf(split: string | undefined, ...task: string[]): string {
  try {
    assertChosen("shop@1.0.0", tasks, { task, ...(split !== undefined && { split }) });
  } catch (error) {
    return `${(error as Error).message}. ${(error as { hint?: string }).hint}`;
  }
  return "";
}

describe("the chosen tasks", () => {
  it("must exist; the error names the nearest and lists all", () => {
    expect(hintOf(undefined, "mouse", "keybord")).toBe(
      "shop@1.0.0 has no task 'keybord'. Did you mean keyboard?\nIts tasks: keyboard, mouse, screen",
    );
    expect(hintOf("trian")).toBe("shop@1.0.0 has no split 'trian'. Did you mean train?\nIts splits: test, train");
    expect(hintOf("test", "keyboard")).toBe("shop@1.0.0 has no task 'keyboard' in the split 'test'. Its tasks: mouse");
  });

  it("are found in any of their splits", () => {
    expect(hintOf("test", "mouse")).toBe("");
    expect(hintOf("train", "mouse", "keyboard")).toBe("");
    expect(hintOf(undefined)).toBe("");
  });

  it("are listed shortened where there are many", () => {
    const many = Array.from({ length: 5_000 }, (_, at) => ({ id: `task-${at}` }));
    expect(() => assertChosen("big@1.0.0", many, { task: ["x"] })).toThrow(
      expect.objectContaining({ hint: expect.stringMatching(/task-19, and 4980 more$/) }),
    );
  });
});
