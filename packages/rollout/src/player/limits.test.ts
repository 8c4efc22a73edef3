import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LimitReached, Meter } from "./limits.ts";

describe("the meter of an episode", () => {
  it("has no limits unless they are given", () => {
    const meter = new Meter({});
    for (let at = 0; at < 1_000; at++) {
      meter.beginTurn();
      meter.beginToolCall();
      meter.addTokens(1_000);
    }
    expect(meter.tokensLeft).toBeUndefined();
    expect(meter.used).toEqual({ turns: 1_000, toolCalls: 1_000, tokens: 1_000_000 });
  });

  it.each([
    ["max_turns", { turns: 2 }, (meter: Meter) => meter.beginTurn()],
    ["max_tool_calls", { toolCalls: 2 }, (meter: Meter) => meter.beginToolCall()],
  ] as const)("ends with %s when the next would be one too many", (stopReason, limits, use) => {
    const meter = new Meter(limits);
    use(meter);
    use(meter);
    expect(() => use(meter)).toThrow(expect.objectContaining({ name: "LimitReached", stopReason }));
    expect(Math.max(meter.used.turns, meter.used.toolCalls)).toBe(2);
  });

  it("lets a turn begin as long as tokens are left, and never says that fewer than none are left", () => {
    const meter = new Meter({ tokens: 10 });
    meter.beginTurn();
    meter.addTokens(9);
    expect(meter.tokensLeft).toBe(1);
    meter.beginTurn();
    meter.addTokens(5);
    expect(meter.tokensLeft).toBe(0);
    expect(() => meter.beginTurn()).toThrow(expect.objectContaining({ stopReason: "max_tokens" }));
  });

  it("never counts more than the limits allow, also in a fork that goes on from what was used", () => {
    const use = fc.constantFrom("turn", "call");
    fc.assert(
      fc.property(fc.nat(5), fc.nat(5), fc.array(use), fc.array(use), (turns, toolCalls, before, after) => {
        const run = (meter: Meter, uses: readonly ("turn" | "call")[]) => {
          for (const one of uses) {
            try {
              if (one === "turn") meter.beginTurn();
              else meter.beginToolCall();
            } catch (error) {
              expect(error).toBeInstanceOf(LimitReached);
            }
          }
        };
        const parent = new Meter({ turns, toolCalls });
        run(parent, before);
        const used = parent.used;
        const fork = new Meter(parent.limits, used);
        run(fork, after);
        const count = (what: "turn" | "call") => [...before, ...after].filter((one) => one === what).length;
        expect(fork.used).toEqual({ turns: Math.min(turns, count("turn")), toolCalls: Math.min(toolCalls, count("call")), tokens: 0 });
        expect(parent.used).toEqual(used);
      }),
    );
  });
});
