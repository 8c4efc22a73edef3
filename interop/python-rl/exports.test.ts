import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { describeNeeding, scriptedOpenAi, temporaryTree } from "@aenv/testing";
import { type ExportFormatName, exportFormats, exportRows, readTrajectories, writeParquet } from "aenvironment/rollout";
import { expect, it } from "vitest";
import { playEcho } from "../agents/play-echo.ts";
import { runPython } from "./python.ts";

const names = ["verl", "areal", "slime", "trl", "table", "sft", "preference", "kto", "tokens", "atif"] as const;

type Message = { role: string; content: string; tool_calls?: { function: { name: string; arguments: unknown } }[] };

describeNeeding("python-data", "exported data", () => {
  it("is read by datasets, pandas and Harbor as it was written; an unscored episode has no reward anywhere", {
    timeout: 120_000,
  }, async () => {
    using tree = temporaryTree();
    await using model = await scriptedOpenAi(
      ({ index, turn }) =>
        turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text: index % 4 === 0 ? "hello" : "wrong" } }] } : "Done.",
      { tokens: { engine: "vllm" } },
    );
    const agent = ["--agent", "openai", "--tokens", "--model", "m", "--base-url", model.baseUrl];
    const run = await playEcho(tree.path, ["--task", "greet", "-n", "2", "-c", "1", ...agent]);
    const read = async function* () {
      for await (const one of readTrajectories(run)) yield one;
      for await (const one of readTrajectories(run)) {
        yield {
          ...one,
          id: "lost",
          task: { id: "lost", split: null, index: null },
          outcome: { kind: "unscored", cause: "sandbox", stage: "play", retryable: true, message: "gone" } as const,
        };
        break;
      }
    };
    for (const name of names) await write(tree.path, name, read);
    const seen = await runPython("read_exports.py", [tree.path]);

    expect(seen.verl).toMatchObject([
      {
        data_source: "echo@1.0.0",
        agent_name: "aenv",
        prompt: [{ role: "system" }, { role: "user", content: "Echo the word 'hello'." }],
        extra_info: { task: "greet" },
      },
      { extra_info: { task: "lost" } },
    ]);
    const wanted = ["greet", "lost"].map((id) => ["echo@1.0.0", { id }]);
    expect(seen.rollouts).toEqual({ verl: wanted, areal: wanted, slime: wanted });
    expect(seen.trl).toMatchObject([{ task: "greet", prompt: [{ role: "system" }, { role: "user", content: "" }] }, { task: "lost" }]);
    const [first] = seen.sft as { messages: Message[]; tools: string }[];
    expect(first?.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "assistant"]);
    expect(first?.messages[2]?.tool_calls?.[0]?.function).toEqual({ name: "echo", arguments: { text: "hello" } });
    expect(JSON.parse(first?.tools ?? "")).toHaveLength(2);
    expect(seen.preference).toMatchObject([{ chosen: expect.anything(), rejected: expect.anything() }]);
    expect(seen.kto.map(({ label }: { label: boolean }) => label)).toEqual([true, false]);
    expect(seen.table).toMatchObject({
      rewards: [1, expect.closeTo(0.2), null],
      scored: [true, true, false],
      messages: [5, 5, 5],
      types: { reward: "float64", scored: "bool", turns: "int64" },
    });
    expect(seen.table.mean).toBeCloseTo(0.6);
    for (const { scored, reward, loss_mask, input_ids } of seen.tokens) {
      expect(loss_mask).toHaveLength(input_ids.length);
      expect([reward === null, loss_mask.includes(1)]).toEqual([!scored, scored]);
    }
    expect(seen.tokens.map(({ scored }: { scored: boolean }) => scored)).toContain(false);
    expect(seen.atif).toHaveLength(3);
    for (const { given, read: parsed } of seen.atif) {
      expect(given.schema_version).toBe("ATIF-v1.8");
      expect(parsed).toEqual(given);
    }
  });
});

async function write(folder: string, name: ExportFormatName, read: Parameters<typeof exportRows>[0]): Promise<void> {
  const { columns } = exportFormats[name];
  const rows = exportRows(read, name, { keepsUnscored: true }, () => {});
  const path = join(folder, `${name}.${columns === null ? "jsonl" : "parquet"}`);
  if (columns !== null) return writeParquet(path, columns, rows);
  const lines = async function* () {
    for await (const row of rows) yield `${JSON.stringify(row)}\n`;
  };
  await pipeline(Readable.from(lines()), createWriteStream(path));
}
