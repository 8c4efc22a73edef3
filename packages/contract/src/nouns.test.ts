import { describe, expect, it } from "vitest";
import { catalogue } from "./catalogue.ts";
import { environment, environmentStatuses } from "./environment.ts";
import { isObject } from "./json.ts";
import { reward } from "./reward.ts";
import { task, taskPage } from "./task.ts";
import { callToolResult, toolDescriptor } from "./tool.ts";

describe("environment", () => {
  it("has the original's statuses at the original's numbers", () => {
    expect(environmentStatuses.map((name, index) => `${index} ${name}`).join(" · ")).toBe(
      "0 Init · 1 Pending · 2 Creating · 3 Created · 4 Testing · 5 Verified · 6 Ready · 7 Released · 8 Failed",
    );
  });

  it("refuses a record with only a name", () => {
    expect(environment.safeParse({ name: "a", version: "1" }).success).toBe(false);
  });
});

describe("task", () => {
  it("has an id, and keeps the author's other fields", () => {
    expect(task.parse({ id: "t1", instruction: "do", split: "train", answer: [42] })).toEqual({
      id: "t1",
      instruction: "do",
      split: "train",
      answer: [42],
    });
    expect(task.safeParse({ id: "" }).success).toBe(false);
    expect(task.safeParse({}).success).toBe(false);
  });

  it("comes in pages with the total", () => {
    expect(taskPage.parse({ items: [{ id: "t1" }], total: 7 })).toEqual({ items: [{ id: "t1" }], total: 7 });
    expect(taskPage.safeParse({ items: [], total: -1 }).success).toBe(false);
  });
});

describe("reward", () => {
  it("is a number with its components, never a string or undefined", () => {
    expect(reward.parse({ reward: 1, components: { a: 0.5, b: 0.5 } })).toEqual({ reward: 1, components: { a: 0.5, b: 0.5 } });
    for (const value of [
      { reward: null, components: {} },
      { reward: "1", components: {} },
      { reward: Number.NaN, components: {} },
      { reward: 1 },
    ]) {
      expect(reward.safeParse(value).success).toBe(false);
    }
  });
});

describe("catalogue", () => {
  it("parses the original's list and fills in defaults", () => {
    const parsed = catalogue.parse({
      total: 1,
      functions: [{ name: "f", endpoint: "/functions/f", method: "POST", parameters: { a: { type: "<class 'str'>", default: null } } }],
    });
    expect(parsed).toEqual({
      total: 1,
      functions: [
        {
          name: "f",
          endpoint: "/functions/f",
          method: "POST",
          description: "",
          parameters: { a: { type: "<class 'str'>", default: null } },
          is_async: true,
        },
      ],
      reward: [],
      health: [],
    });
  });
});

describe("tools", () => {
  it("keep fields of newer protocol revisions", () => {
    const tool = { name: "a", inputSchema: { type: "object" }, annotations: { readOnlyHint: true }, icons: [] };
    expect(toolDescriptor.parse(tool)).toEqual(tool);
    const result = { content: [{ type: "resource_link", uri: "file:///a" }], structuredContent: null, _meta: { a: 1 } };
    expect(callToolResult.parse(result)).toEqual(result);
  });

  it("return a list of blocks", () => {
    expect(callToolResult.safeParse({ content: "text" }).success).toBe(false);
    expect(callToolResult.safeParse({ content: [{ text: "no type" }] }).success).toBe(false);
  });
});

describe("isObject", () => {
  it("is true for plain objects only", () => {
    expect(isObject({})).toBe(true);
    for (const other of [null, [], "a", 1, undefined]) expect(isObject(other)).toBe(false);
  });
});
