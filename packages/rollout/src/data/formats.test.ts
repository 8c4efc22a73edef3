import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Trajectory } from "@aenv/contract";
import { type Tree, temporaryTree } from "@aenv/testing";
import * as fc from "fast-check";
import { parquetReadObjects } from "hyparquet";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newTrajectory } from "../fixtures/trajectory.ts";
import { newTurn } from "../fixtures/turn.ts";
import { type ExportCounts, type ExportFormatName, exportFormats, exportRows } from "./formats.ts";
import { datasetInfo } from "./llama-factory.ts";
import { type Columns, writeParquet } from "./parquet.ts";
import { preferencePairs } from "./preference.ts";
import type { Row } from "./row.ts";

const unscored = { kind: "unscored", cause: "sandbox", stage: "play", retryable: true, message: "gone" } as const;
const scored = (reward: number) => ({ kind: "scored", reward, components: { said_it: reward } }) as const;

async function exported(all: readonly Trajectory[], format: ExportFormatName, filter = {}) {
  let counts: ExportCounts | null = null;
  const read = async function* () {
    yield* all;
  };
  const rows: Row[] = [];
  for await (const row of exportRows(read, format, filter, (found) => (counts = found))) rows.push(row);
  return { rows, counts: counts as unknown as ExportCounts };
}

describe("every format", () => {
  const names = Object.keys(exportFormats) as ExportFormatName[];
  const trajectory = fc
    .record({
      reward: fc.option(fc.constantFrom(0, 0.5, 1)),
      task: fc.constantFrom("a", "b"),
      group: fc.constantFrom("g", "h"),
      isSilent: fc.boolean(),
      hasTokens: fc.boolean(),
    })
    .map(
      ({ reward, task, group, isSilent, hasTokens }) =>
        (id: string) =>
          newTrajectory({
            id,
            task: { id: task, split: null, index: null },
            group: { id: group, index: 0, size: 1 },
            outcome: reward === null ? unscored : scored(reward),
            messages: newTrajectory().messages.slice(0, isSilent ? 1 : 4),
            turns:
              hasTokens && !isSilent
                ? [
                    newTurn({ message: 1, prompt_token_ids: [1], completion_token_ids: [2] }),
                    newTurn({ message: 3, prompt_token_ids: [9], completion_token_ids: [2] }),
                  ]
                : [],
          }),
    );

  it("accounts for every trajectory, and has no row of an unscored one that does not say so", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(trajectory, { maxLength: 12 }),
        fc.constantFrom(...names),
        fc.boolean(),
        async (makers, name, keepsUnscored) => {
          const all = makers.map((make, at) => make(String(at)));
          const { rows, counts } = await exported(all, name, { keepsUnscored });
          const sum = (by: Readonly<Record<string, number>>) => Object.values(by).reduce((total, count) => total + count, 0);
          expect(counts.kept + sum(counts.dropped)).toBe(all.length);
          expect(counts.rows).toBe(rows.length);
          const withRows = counts.kept - sum(counts.skipped);
          // A pair has two trajectories in a row; a trajectory whose tokens drift has two rows.
          if (name === "preference") expect(rows.length * 2).toBe(withRows);
          else if (name === "tokens") expect(rows.length).toBe(2 * withRows);
          else expect(rows.length).toBe(withRows);
          if (!keepsUnscored || !exportFormats[name].marksUnscored)
            expect(counts.dropped.unscored ?? 0).toBe(all.filter(({ outcome }) => outcome.kind === "unscored").length);
          for (const row of rows) if ("reward" in row && row.reward === null) expect(row.scored).toBe(false);
          for (const row of rows) if (row.scored === false && "loss_mask" in row) expect(row.loss_mask).not.toContain(1);
        },
      ),
    );
  });

  it("of pairs has the pair that each whole group gives, wherever its samples are", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(trajectory, { maxLength: 12 }), async (makers) => {
        const all = makers.map((make, at) => make(String(at))).map((one) => ({ ...one, tools: [{ name: one.id, inputSchema: {} }] }));
        const { rows } = await exported(all, "preference");
        const groups = Map.groupBy(all, ({ group }) => group?.id);
        const whole = [...groups.values()].flatMap((group) => preferencePairs(group, { minMargin: 0, perGroup: 1 }));
        const sorted = (some: readonly unknown[]) => some.map((one) => JSON.stringify(one)).sort();
        expect(sorted(rows)).toEqual(sorted(whole));
      }),
    );
  });

  it("is JSON, one row a line", async () => {
    for (const name of names) {
      const { rows } = await exported([newTrajectory()], name);
      expect(JSON.parse(JSON.stringify(rows)), name).toEqual(rows);
    }
  });
});

describe("a file of tasks", () => {
  const played = [
    newTrajectory({ id: "0" }),
    newTrajectory({ id: "1" }),
    newTrajectory({ id: "2", task: { id: "recall", split: "train", index: 1 } }),
  ];
  const prompt = [{ role: "user", content: "Echo the word 'hello'." }];

  it.each([
    ["slime", { prompt: "Echo the word 'hello'.", label: "", metadata: { environment: "echo@1.0.0", task: "greet" } }],
    ["areal", { environment: "echo@1.0.0", task: "greet", messages: prompt }],
    ["trl", { prompt: [{ role: "user", content: "" }], environment: "echo@1.0.0", task: "greet" }],
    [
      "verl",
      {
        data_source: "echo@1.0.0",
        prompt,
        ability: "agent",
        reward_model: { style: "environment", ground_truth: "" },
        extra_info: { split: "train", index: 0, environment: "echo@1.0.0", task: "greet" },
        agent_name: "aenv",
      },
    ],
  ] as const)("for %s has one row a task: what an agent is told, and which task it is", async (format, row) => {
    const { rows, counts } = await exported(played, format);
    expect(rows[0]).toEqual(row);
    expect(counts).toEqual({ kept: 3, rows: 2, dropped: {}, skipped: { "same task": 1 } });
  });

  it("has tasks of unscored episodes if asked to: a task has no score", async () => {
    const all = [newTrajectory({ outcome: unscored })];
    expect((await exported(all, "areal")).counts).toMatchObject({ rows: 0, dropped: { unscored: 1 } });
    expect((await exported(all, "areal", { keepsUnscored: true })).counts).toMatchObject({ rows: 1 });
  });
});

describe("rows for KTO", () => {
  it("are wanted if their reward passes", async () => {
    const { rows } = await exported([newTrajectory({ outcome: scored(0.5) }), newTrajectory({ outcome: scored(0.4) })], "kto", {
      passReward: 0.5,
    });
    expect(rows.map(({ label }) => label)).toEqual([true, false]);
    expect(rows[0]).toMatchObject({
      prompt: [{ role: "user" }],
      completion: [{ role: "assistant" }, { role: "tool" }, { role: "assistant" }],
    });
  });
});

describe("rows for LLaMA-Factory", () => {
  const [user, call, result, done] = newTrajectory().messages as [
    Trajectory["messages"][0],
    Trajectory["messages"][0],
    Trajectory["messages"][0],
    Trajectory["messages"][0],
  ];

  it.each([
    ["a call, its results, and words", [user, call, result, result, done], 1],
    ["instructions first", [{ role: "system", content: "Be brief." }, user, done], 1],
    ["two messages of the user", [user, user, done], 0],
    ["two messages of the agent", [user, call, done], 0],
    ["instructions later", [user, done, { role: "system", content: "Be brief." }, done], 0],
    ["the agent first", [done, user, done], 0],
  ] as const)("alternate: %s", async (_, messages, count) => {
    const { rows, counts } = await exported([newTrajectory({ messages: [...messages] })], "llama-factory");
    expect([rows.length, counts.skipped]).toEqual([count, count === 1 ? {} : { "turns do not alternate": 1 }]);
  });

  it("are described by an entry with the names of their columns and roles", () => {
    expect(datasetInfo("run.jsonl")).toMatchObject({
      file_name: "run.jsonl",
      formatting: "openai",
      columns: { messages: "messages", tools: "tools" },
    });
  });
});

describe("a Parquet file", () => {
  let tree: Tree;
  beforeEach(() => (tree = temporaryTree()));
  afterEach(() => tree[Symbol.dispose]());

  async function written(columns: Columns, rows: readonly Record<string, unknown>[]) {
    const path = join(tree.path, "rows.parquet");
    await writeParquet(
      path,
      columns,
      (async function* () {
        yield* rows;
      })(),
    );
    const bytes = readFileSync(path);
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
    return (await parquetReadObjects({ file })).map((row) =>
      JSON.parse(JSON.stringify(row, (_, value) => (typeof value === "bigint" ? Number(value) : value))),
    );
  }

  it.each(["verl", "table"] as const)("for %s has the rows that were written, with nulls and nested fields", async (name) => {
    const all = [newTrajectory({ id: "0" }), newTrajectory({ id: "1", outcome: unscored, task: { id: null, split: null, index: null } })];
    const { rows } = await exported(all, name, { keepsUnscored: true });
    expect(rows).toHaveLength(2);
    expect(await written(exportFormats[name].columns, rows)).toEqual(rows);
  });

  it("has whatever texts, numbers, lists and groups its rows hold, also more than one group of them, and none", async () => {
    const columns: Columns = {
      text: "text",
      count: "integer",
      share: "number",
      is: "boolean",
      list: [{ role: "text", parts: ["integer"] }],
      group: { name: "text" },
    };
    const integer = fc.maxSafeInteger();
    const row = fc.record({
      text: fc.option(fc.string({ unit: "grapheme" })),
      count: fc.option(integer),
      share: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)),
      is: fc.option(fc.boolean()),
      list: fc.array(fc.record({ role: fc.option(fc.string()), parts: fc.array(integer, { maxLength: 3 }) }), { maxLength: 3 }),
      group: fc.record({ name: fc.option(fc.string()) }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 20 }), async (rows) => {
        expect(await written(columns, rows)).toEqual(JSON.parse(JSON.stringify(rows)));
      }),
      { numRuns: 50 },
    );
    const many = Array.from({ length: 2_500 }, (_, count) => ({ text: "x", count, share: 0.5, is: true, list: [], group: { name: null } }));
    expect((await written(columns, many)).map(({ count }) => count)).toEqual(many.map(({ count }) => count));
  });
});
