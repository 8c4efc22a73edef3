import { describe, expect, it } from "vitest";
import { row, toRow } from "./row.ts";

describe("toRow", () => {
  it("makes a row that the schema accepts, with the ratio to the baseline", () => {
    const made = toRow("kit", { name: "echo", value: 30.126_49, unit: "us", beside: { what: "bare", value: 20 } });
    expect(row.parse(made)).toEqual({
      suite: "kit",
      name: "echo",
      value: 30.13,
      unit: "us",
      beside: "bare: 20 us",
      ratio: 1.506,
      aim: null,
      holds: true,
    });
  });

  it("checks an aim before it rounds", () => {
    const beside = { what: "bare", value: 1 };
    const aim = { of: "ratio", is: "at most", limit: 2.5 } as const;
    expect(toRow("kit", { name: "a", value: 2.5, unit: "us", beside, aim })).toMatchObject({ ratio: 2.5, holds: true });
    expect(toRow("kit", { name: "a", value: 2.500_01, unit: "us", beside, aim })).toMatchObject({ ratio: 2.5, holds: false });
  });

  it("supports aims for values, upper and lower limits", () => {
    const aim = { of: "value", is: "at least", limit: 10 } as const;
    expect(toRow("kit", { name: "a", value: 9, unit: "x", aim })).toMatchObject({ aim: "value >= 10", holds: false });
    expect(toRow("kit", { name: "a", value: 10, unit: "x", aim })).toMatchObject({ holds: true });
  });

  it("does not meet an aim for a ratio without a baseline", () => {
    expect(toRow("kit", { name: "a", value: 1, unit: "x", aim: { of: "ratio", is: "at most", limit: 2 } }).holds).toBe(false);
  });
});
