import { defineEnvironment } from "@aenv/kit";
import * as z from "zod";

type Side = "first" | "second";

/** A game for two agents, or for one that plays both sides: who takes the last stick wins. */
export default defineEnvironment({
  roles: { first: { maxInvalidMoves: 3 }, second: { maxInvalidMoves: 3 } },
  tasks: () => [{ id: "ten", sticks: 10 }],
  setup: ({ task }) => ({ sticks: Number(task?.sticks ?? 10), next: "first" as Side, winner: null as Side | null }),
  turnOf: ({ state }) => (state.winner === null ? [state.next] : []),
  prompt: ({ state, role }) => `There are ${state.sticks} sticks. You are ${role}. Take 1 to 3 in your turn; who takes the last one wins.`,
  observe: ({ state }) => `${state.sticks} sticks are left.`,
  tools: [
    {
      name: "take",
      description: "Takes sticks.",
      input: z.object({ sticks: z.int().min(1).max(3) }),
      run: ({ sticks }, { state }) => {
        if (sticks > state.sticks) throw new Error(`there are only ${state.sticks} sticks`);
        state.sticks -= sticks;
        if (state.sticks === 0) state.winner = state.next;
        state.next = other(state.next);
        return `${state.sticks} sticks are left.`;
      },
    },
  ],
  forfeit: (state, role) => {
    state.winner = other(role as Side);
  },
  // The best move leaves a multiple of four. It is asked for in each turn.
  oracle: ({ state }) => [{ tool: "take", arguments: { sticks: state.sticks % 4 || 1 } }],
  rewards: [{ name: "won", score: ({ state, role }) => (state.winner === role ? 1 : -1) }],
});

function other(side: Side): Side {
  return side === "first" ? "second" : "first";
}
