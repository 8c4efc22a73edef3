import type { OracleAction } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import type { AgentStart, Player } from "../player/agent.ts";
import { oracleAgent } from "./scripted.ts";

const options = { signal: new AbortController().signal };

/** A player of the oracle, whose answers are these, one after the other. */
async function begin(answers: readonly (readonly OracleAction[] | null)[], role?: string): Promise<Player> {
  const left = [...answers];
  const start: AgentStart = {
    task: { id: "kuhn", instruction: null },
    tools: [],
    seed: 1,
    ...(role !== undefined && { role }),
    oracle: async () => (left.length === 0 ? [] : (left.shift() ?? null)),
  };
  return oracleAgent().begin(start);
}

const called = async (player: Player) => {
  const call = (await player.next([], options))?.message.tool_calls?.[0];
  return call === undefined ? null : `${call.id} ${call.function.arguments}`;
};
const move = (what: string): OracleAction => ({ tool: "move", arguments: { what } });

describe("the oracle", () => {
  it("is asked once for the solution of an episode", async () => {
    const player = await begin([[move("a"), move("b")], [move("c")]]);
    expect([await called(player), await called(player), await called(player)]).toEqual([
      'call_0 {"what":"a"}',
      'call_1 {"what":"b"}',
      null,
    ]);
  });

  it("is asked in each turn of a role for what to do next, also if that was nothing when the episode began", async () => {
    const player = await begin([[], [move("a"), move("b")], [move("c")]], "black");
    const moves = [await called(player), await called(player), await called(player), await called(player)];
    expect(moves).toEqual(['call_0 {"what":"a"}', 'call_1 {"what":"b"}', 'call_2 {"what":"c"}', null]);
  });

  it("is no agent where the environment knows no solution", async () => {
    await expect(begin([null])).rejects.toThrow(/knows no solution of task 'kuhn'/);
  });
});
