import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { outcome } from "./outcome.ts";
import { trajectory } from "./trajectory.ts";

const scored = { kind: "scored", reward: 0.5, components: { refunded: 0.5 } };
const unscored = { kind: "unscored", cause: "sandbox", retryable: true, message: "the sandbox is gone" };

describe("outcome", () => {
  it("is scored with a number, or unscored with a cause", () => {
    expect(outcome.parse(scored)).toEqual(scored);
    for (const cause of ["sandbox", "environment", "model", "agent", "timeout", "cancelled"]) {
      expect(outcome.parse({ ...unscored, cause })).toEqual({ ...unscored, cause });
    }
  });

  it("is never both: what a failure says of a reward does not survive", () => {
    expect(outcome.parse({ ...scored, ...unscored })).toEqual(unscored);
    expect(outcome.parse({ ...unscored, ...scored })).toEqual(scored);
  });

  it("has a reward if and only if it is scored, whatever it was made from", () => {
    const value = fc.record(
      {
        kind: fc.constantFrom("scored", "unscored", "other"),
        reward: fc.oneof(fc.double(), fc.constant(null)),
        components: fc.dictionary(fc.string(), fc.double()),
        cause: fc.constantFrom("sandbox", "timeout", "bad luck"),
        retryable: fc.boolean(),
        message: fc.string(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(value, (input) => {
        const parsed = outcome.safeParse(input);
        if (!parsed.success) return;
        expect("reward" in parsed.data).toBe(parsed.data.kind === "scored");
        expect("cause" in parsed.data).toBe(parsed.data.kind === "unscored");
      }),
    );
  });

  it.each([
    [{ kind: "scored" }],
    [{ kind: "scored", reward: "1", components: {} }],
    [{ kind: "scored", reward: Number.NaN, components: {} }],
    [{ kind: "scored", reward: Number.POSITIVE_INFINITY, components: {} }],
    [{ kind: "scored", reward: 1, components: { a: Number.NaN } }],
    [{ kind: "unscored", reward: 0 }],
    [{ ...unscored, cause: "bad luck" }],
    [{ reward: 1, components: {} }],
    [0],
    [null],
  ])("refuses %j", (value) => {
    expect(outcome.safeParse(value).success).toBe(false);
  });
});

describe("trajectory", () => {
  const step = {
    index: 0,
    tool: "echo",
    arguments: { text: "hi" },
    result: { content: [{ type: "text", text: "hi" }], isError: false },
    startedAt: "2026-01-12T03:25:46.000Z",
    durationMs: 1.5,
  };
  const whole = { environment: "echo@1.0.0", instanceId: "echo-1", taskId: null, seed: null, steps: [step], outcome: scored };

  it("holds the steps and the outcome of an episode", () => {
    expect(trajectory.parse(whole)).toEqual(whole);
    expect(trajectory.parse({ ...whole, taskId: "t1", seed: 7, steps: [], outcome: unscored })).toMatchObject({ outcome: unscored });
  });

  it("does not exist without an outcome", () => {
    const { outcome: _, ...rest } = whole;
    expect(trajectory.safeParse(rest).success).toBe(false);
  });

  it.each([{ index: -1 }, { startedAt: "yesterday" }, { durationMs: -1 }, { result: {} }])("refuses a step with %j", (wrong) => {
    expect(trajectory.safeParse({ ...whole, steps: [{ ...step, ...wrong }] }).success).toBe(false);
  });
});
