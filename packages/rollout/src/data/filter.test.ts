import type { Trajectory } from "@aenv/contract";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newTrajectory } from "../fixtures/trajectory.ts";
import { newTurn } from "../fixtures/turn.ts";
import { type Filtered, type FilterOptions, filterTrajectories } from "./filter.ts";

interface Sample {
  readonly task?: string;
  readonly group?: string;
  readonly reward: number | null;
  readonly words?: string;
  readonly tokens?: number;
}

function trajectoryOf({ task = "a", group = "g", reward, words = "", tokens = 10 }: Sample, at: number): Trajectory {
  return newTrajectory({
    id: String(at),
    task: { id: task, split: null, index: null },
    group: { id: group, index: 0, size: 1 },
    messages: [
      { role: "user", content: "Hi." },
      { role: "assistant", content: words || String(at) },
    ],
    usage: { prompt_tokens: tokens, completion_tokens: 0, cached_tokens: 0 },
    outcome:
      reward === null
        ? { kind: "unscored", cause: "model", stage: "play", retryable: true, message: "gone" }
        : { kind: "scored", reward, components: {} },
  });
}

async function filter(samples: readonly Sample[], options: FilterOptions) {
  const all = samples.map(trajectoryOf);
  async function* read() {
    yield* all;
  }
  let counts: Filtered = { kept: -1, dropped: {} };
  const kept: number[] = [];
  for await (const { id } of filterTrajectories(read, options, (found) => (counts = found))) kept.push(Number(id));
  return { kept, counts };
}

describe("a filter of trajectories", () => {
  const unscored = { reward: null };
  const cases: readonly [string, FilterOptions, readonly Sample[], readonly number[], Filtered["dropped"]][] = [
    ["leaves unscored ones out", {}, [{ reward: 0 }, unscored, { reward: 1 }], [0, 2], { unscored: 1 }],
    ["keeps unscored ones if asked to", { keepsUnscored: true, minReward: 1 }, [{ reward: 0 }, unscored], [1], { reward: 1 }],
    [
      "has bounds of the reward, both included",
      { minReward: 0.2, maxReward: 0.8 },
      [0, 0.2, 0.5, 0.8, 1].map((reward) => ({ reward })),
      [1, 2, 3],
      { reward: 2 },
    ],
    [
      "leaves out the same words for the same task",
      { isDeduplicated: true },
      [
        { reward: 1, words: "x" },
        { reward: 1, words: "x" },
        { reward: 1, words: "x", task: "b" },
        { reward: 1, words: "y" },
      ],
      [0, 2, 3],
      { duplicate: 1 },
    ],
    [
      "keeps the best of each group, of equal ones the first",
      { bestOfGroup: 1 },
      [{ reward: 0 }, { reward: 1 }, { reward: 1 }, { reward: 0.1, group: "h" }, { ...unscored, group: "h" }],
      [1, 3],
      { "not best of group": 2, unscored: 1 },
    ],
    ["keeps so many of each task", { perTask: 1 }, [{ reward: 1 }, { reward: 1 }, { reward: 1, task: "b" }], [0, 2], { "task limit": 1 }],
    ["has a limit of tokens", { maxTokens: 10 }, [{ reward: 1, tokens: 11 }, { reward: 1 }], [1], { length: 1 }],
    [
      "chooses the best of a group among those that are short enough",
      { maxTokens: 10, bestOfGroup: 1 },
      [{ reward: 1, tokens: 11 }, { reward: 0.5 }, { reward: 0.2 }],
      [1],
      { length: 1, "not best of group": 1 },
    ],
    [
      "chooses the best of a group among different ones",
      { isDeduplicated: true, bestOfGroup: 2 },
      [
        { reward: 1, words: "x" },
        { reward: 1, words: "x" },
        { reward: 0.5, words: "y" },
      ],
      [0, 2],
      { duplicate: 1 },
    ],
    [
      "has the limit of tokens for unscored ones too",
      { keepsUnscored: true, maxTokens: 10 },
      [{ reward: null, tokens: 11 }],
      [],
      { length: 1 },
    ],
    ["has a limit of messages", { maxMessages: 1 }, [{ reward: 1 }], [], { length: 1 }],
    [
      "keeps tasks that are neither too easy nor too hard; unscored ones do not count",
      { passRate: [0.25, 0.75] },
      [{ reward: 1 }, { reward: 0 }, unscored, { reward: 1, task: "easy" }, { reward: 0, task: "hard" }],
      [0, 1],
      { "pass rate": 2, unscored: 1 },
    ],
    ["counts as passed what reaches the pass reward", { passRate: [1, 1], passReward: 0.5 }, [{ reward: 0.5 }], [0], {}],
  ];
  it.each(cases)("%s", async (_, options, samples, kept, dropped) => {
    expect(await filter(samples, options)).toEqual({ kept, counts: { kept: kept.length, dropped } });
  });

  it("measures the longest prompt with its answer, not the sum of all prompts, and takes an unknown length as too long", async () => {
    const turns = [newTurn({ prompt_tokens: 6, completion_tokens: 2 }), newTurn({ prompt_tokens: 9, completion_tokens: 1 })];
    const unknown = newTurn({ prompt_tokens: 1, completion_tokens: null });
    const all = [
      newTrajectory({ turns, usage: { prompt_tokens: 15, completion_tokens: 3, cached_tokens: 0 } }),
      newTrajectory({ turns: [unknown], usage: { prompt_tokens: 1, completion_tokens: null, cached_tokens: 0 } }),
    ];
    const read = async function* () {
      yield* all;
    };
    const kept = async (maxTokens: number) => {
      let count = 0;
      for await (const _ of filterTrajectories(read, { maxTokens })) count++;
      return count;
    };
    expect([await kept(9), await kept(10)]).toEqual([0, 1]);
  });

  it("accounts for every trajectory once, keeps their order, and changes nothing the second time", async () => {
    const sample = fc.record({
      task: fc.constantFrom("a", "b", "c"),
      group: fc.constantFrom("g", "h"),
      reward: fc.oneof(fc.constant(null), fc.constantFrom(0, 0.5, 1)),
      words: fc.constantFrom("x", "y", ""),
      tokens: fc.integer({ min: 0, max: 20 }),
    });
    const options = fc.record(
      {
        minReward: fc.constantFrom(0, 0.5, 1),
        maxReward: fc.constantFrom(0, 0.5, 1),
        keepsUnscored: fc.boolean(),
        isDeduplicated: fc.boolean(),
        bestOfGroup: fc.integer({ min: 1, max: 3 }),
        perTask: fc.integer({ min: 1, max: 3 }),
        maxTokens: fc.integer({ min: 0, max: 20 }),
        passRate: fc.constantFrom([0, 1] as const, [0.3, 0.7] as const),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(sample, { maxLength: 30 }), options, async (samples, own) => {
        const { kept, counts } = await filter(samples, own);
        const dropped = Object.values(counts.dropped).reduce((sum, count) => sum + count, 0);
        expect(counts.kept).toBe(kept.length);
        expect(counts.kept + dropped).toBe(samples.length);
        expect(kept).toEqual(kept.toSorted((a, b) => a - b));
        expect(await filter(samples, own)).toEqual({ kept, counts });
      }),
    );
  });
});
