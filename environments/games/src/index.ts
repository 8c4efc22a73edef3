import { defineEnvironment } from "aenvironment";
import * as z from "zod";
import { connectFour } from "./connect-four.ts";
import { type Game, otherOf, type Role, randomAt, roles, winFor } from "./game.ts";
import { kuhn } from "./kuhn.ts";
import { rockPaperScissors } from "./rock-paper-scissors.ts";

// The rules of each game are pure functions in a file of their own. Here they become an environment with two roles.

const games: Readonly<Record<string, Game<unknown>>> = {
  kuhn: kuhn as Game<unknown>,
  "connect-four": connectFour as Game<unknown>,
  "rock-paper-scissors": rockPaperScissors as Game<unknown>,
};

interface State {
  readonly game: string;
  readonly seed: number;
  /** The state of the game's own rules: plain data, so that snapshots and forks need nothing else. */
  position: unknown;
  /** So many moves have been made. */
  moves: number;
  /** The role that has given up, if one has. */
  loser: Role | null;
}

const tasks = Object.entries(games).map(([id, { rules }]) => ({ id, split: "train", instruction: rules }));

const gameOf = ({ game }: State) => games[game] as Game<unknown>;
const turnOf = (state: State) => (state.loser === null ? gameOf(state).turnOf(state.position) : []);

/** The tools of each game, made once: episodes that get the same list share what is compiled of it. */
const tools = Object.fromEntries(
  Object.entries(games).map(([name, game]) => [
    name,
    [
      {
        name: "move",
        description: "Makes your move.",
        input: z.object({ move: z.enum(game.moves) }),
        // With `resolve`, a tool only checks the move and returns it: in rock-paper-scissors it has to wait for the other one.
        run: ({ move }: { move: string }, { state, role }: { state: State; role: string | null }) => {
          const legal = game.legalMoves(state.position, role as Role);
          if (!legal.includes(move)) throw new Error(`'${move}' is not possible now; possible: ${legal.join(", ")}`);
          return move;
        },
      },
      {
        name: "look",
        description: "Shows what you can see, and your possible moves.",
        // A tool that only reads may be called at any time.
        outOfTurn: true,
        run: (_: unknown, { state, role }: { state: State; role: string | null }) => ({
          view: game.view(state.position, role as Role),
          moves: turnOf(state).includes(role as Role) ? game.legalMoves(state.position, role as Role) : [],
        }),
      },
    ],
  ]),
);

export default defineEnvironment({
  // Each role has a link of its own. A role that makes more than three invalid moves, or takes ten minutes for one, gives up.
  roles: {
    white: { description: "moves first, where it matters", turnTimeoutMs: 600_000, maxInvalidMoves: 3 },
    black: { turnTimeoutMs: 600_000, maxInvalidMoves: 3 },
  },

  tasks: () => tasks,

  setup: ({ task, seed }): State => {
    const game = task?.id ?? "kuhn";
    return { game, seed, position: (games[game] as Game<unknown>).begin(seed), moves: 0, loser: null };
  },

  // The roles that may act now: one, both at once, or none when the game is over.
  turnOf: ({ state }) => turnOf(state),

  // Called when all of them have moved.
  resolve: (actions, state) => {
    state.position = gameOf(state).play(state.position, actions as Partial<Record<Role, string>>);
    state.moves++;
  },

  // What a role sees, and nothing that the other one hides. It comes with the end of each wait for a turn.
  observe: ({ state, role }) => (role === null ? null : gameOf(state).view(state.position, role as Role)),

  prompt: ({ state, role }) => [
    { role: "system", content: `${gameOf(state).rules} You are ${role}. Use your tools; wait for your turn with wait_for_turn.` },
    { role: "user", content: gameOf(state).view(state.position, role as Role) },
  ],

  status: ({ state }) => {
    if (turnOf(state).length > 0) return false;
    const scores = scoresOf(state);
    const winner = roles.find((role) => scores[role] > 0);
    return { done: true, reason: winner === undefined ? "a draw" : `${winner} wins` };
  },

  // What stands for the state when two episodes are compared: all of it. A choice that waits for the other is added by itself.
  digest: (state) => state,

  toolsOf: (state) => tools[state.game] ?? [],

  // The loser pays what it has at stake. Without these lines both roles would be unscored.
  forfeit: (state, role) => {
    state.loser = role as Role;
  },

  // The next move of a role whose turn it is: an equilibrium of Kuhn poker and rock-paper-scissors, and a fair player of connect four.
  oracle: ({ state, role }) => {
    if (!turnOf(state).includes(role as Role)) return [];
    const random = randomAt(state.seed, 1 + 2 * state.moves + roles.indexOf(role as Role));
    return [{ tool: "move", arguments: { move: gameOf(state).suggest(state.position, role as Role, random) } }];
  },

  // Computed for each role. Without a reward for all, the reward of the episode is their sum: 0.
  rewards: [{ name: "score", description: "What the role has won.", score: ({ state, role }) => finalScore(state, role as Role) }],
});

function scoresOf(state: State): Readonly<Record<Role, number>> {
  const { loser } = state;
  if (loser !== null) return winFor(otherOf(loser), gameOf(state).stake(state.position, loser));
  return gameOf(state).scores(state.position);
}

/** A game that is not over has no score, which is not 0. */
function finalScore(state: State, role: Role): number {
  if (turnOf(state).length > 0) throw new Error("the game is not over");
  return scoresOf(state)[role];
}
