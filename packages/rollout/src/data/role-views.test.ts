import type { Trajectory, TrajectoryRole } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import { newTrajectory } from "../fixtures/trajectory.ts";
import { newTurn } from "../fixtures/turn.ts";
import { mergeTurns } from "../models/sequences.ts";
import { type ExportFormatName, exportFormats, exportRows } from "./formats.ts";
import { samplesIn } from "./role-views.ts";
import type { Row } from "./row.ts";

const whole = newTrajectory();
const [asked, called, answered, said] = whole.messages as [object, object, object, object];

function role(own: Partial<TrajectoryRole> = {}): TrajectoryRole {
  const { messages, tools, outcome, stop_reason, truncated, usage, cost } = whole;
  const played = { player: "white", agent: "openai", model: "m", trainable: true };
  return { ...played, messages, tools, outcome, stop_reason, truncated, usage, cost, ...own };
}

/** Both roles have the same conversation; white won. */
function match(id: string, own: { readonly white?: Partial<TrajectoryRole>; readonly black?: Partial<TrajectoryRole> } = {}): Trajectory {
  const lost = { kind: "scored", reward: 0, components: {} } as const;
  const tokens = { message: 1, prompt_token_ids: [1], completion_token_ids: [2] };
  return newTrajectory({
    id,
    messages: [],
    roles: { white: role(own.white), black: role({ outcome: lost, player: "black", model: "n", ...own.black }) },
    turns: [newTurn({ ...tokens, node_id: "white-n0", role: "white" }), newTurn({ ...tokens, node_id: "black-n0", role: "black" })],
    steps: [{ ...(whole.steps[0] as (typeof whole.steps)[number]), role: "white" }],
  });
}

async function exported(all: readonly Trajectory[], format: ExportFormatName, filter = {}): Promise<Row[]> {
  const read = async function* () {
    yield* all;
  };
  const rows: Row[] = [];
  for await (const row of exportRows(read, format, filter, () => {})) rows.push(row);
  return rows;
}

describe("an episode with roles", () => {
  it("gives a sample for each trainable role, with what it saw, its outcome and a group of its own", () => {
    const [white, black, ...more] = samplesIn(match("e"));
    expect(more).toEqual([]);
    expect(white).toMatchObject({
      id: "e#white",
      role: "white",
      group: { id: "g#white" },
      messages: [asked, called, answered, said],
      outcome: { reward: 1 },
      provenance: { agent: "openai", model: "m" },
    });
    expect([white?.steps.length, white?.turns.map(({ role: by }) => by)]).toEqual([1, ["white"]]);
    expect(black).toMatchObject({ id: "e#black", group: { id: "g#black" }, outcome: { reward: 0 }, steps: [], provenance: { model: "n" } });
    expect(samplesIn(match("e", { black: { trainable: false } })).map((one) => one.role)).toEqual(["white"]);
    expect(samplesIn(whole)).toEqual([whole]);
  });

  it("has token sequences for each role", () => {
    expect(mergeTurns(match("e").turns).map(({ role: by, turns }) => [by, turns])).toEqual([
      ["white", ["white-n0"]],
      ["black", ["black-n0"]],
    ]);
  });

  it("has a row for each trainable role in every format of agents' turns, and one in formats of whole episodes or tasks", async () => {
    const count = async (one: Trajectory) => {
      const counts = Object.keys(exportFormats).map(async (name) => [name, (await exported([one], name as ExportFormatName)).length]);
      return Object.fromEntries(await Promise.all(counts));
    };
    const perTask = { preference: 0, trajectories: 1, verl: 1, slime: 1, areal: 1, trl: 1 };
    const perRole = (rows: number) => ({
      sft: rows,
      openai: rows,
      "llama-factory": rows,
      kto: rows,
      tokens: rows,
      table: rows,
      atif: rows,
    });
    expect(await count(match("e"))).toEqual({ ...perTask, ...perRole(2) });
    expect(await count(match("e", { black: { trainable: false } }))).toEqual({ ...perTask, ...perRole(1) });
    expect(await exported([match("e")], "table")).toMatchObject([
      { id: "e#white", role: "white", reward: 1 },
      { id: "e#black", role: "black", reward: 0 },
    ]);
  });

  it("is compared within its group and role: the winner's words are never preferred to the loser's of the other role", async () => {
    const other = { kind: "scored", reward: 0.5, components: {} } as const;
    const rows = await exported(
      [match("a"), match("b", { white: { outcome: other, messages: [asked as never, said as never] } })],
      "preference",
    );
    expect(rows).toHaveLength(1);
    expect(await exported([match("a"), match("b")], "sft", { bestOfGroup: 1 })).toHaveLength(2);
    // Black has never passed, white always.
    expect(await exported([match("a"), match("b")], "table", { passRate: [0.5, 1] })).toMatchObject([{ role: "white" }, { role: "white" }]);
  });

  it("of which one role is unscored gives a row of the other only", async () => {
    const unscored = { kind: "unscored", cause: "agent", stage: "play", retryable: false, message: "left" } as const;
    expect(await exported([match("e", { white: { outcome: unscored } })], "sft")).toHaveLength(1);
    expect(await exported([match("e", { white: { outcome: unscored } })], "tokens", { keepsUnscored: true })).toMatchObject([
      { role: "white", reward: null, scored: false, loss_mask: [0, 0] },
      { role: "black", reward: 0, scored: true },
    ]);
  });
});
