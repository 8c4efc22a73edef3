import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ConnectFourState, connectFour, winnerOf } from "./connect-four.ts";
import { type Game, type Role, roles } from "./game.ts";
import { kuhn } from "./kuhn.ts";
import { rockPaperScissors } from "./rock-paper-scissors.ts";

const games: readonly (readonly [string, Game<unknown>, number])[] = [
  ["kuhn", kuhn as Game<unknown>, 3],
  ["connect four", connectFour as Game<unknown>, 42],
  ["rock-paper-scissors", rockPaperScissors as Game<unknown>, 3],
];

/** Plays legal moves that the numbers choose, to the end. */
function playOut(game: Game<unknown>, seed: number, choices: readonly number[]): { states: unknown[]; last: unknown } {
  const states: unknown[] = [game.begin(seed)];
  for (let step = 0; ; step++) {
    const state = states.at(-1);
    const due = game.turnOf(state);
    if (due.length === 0) return { states, last: state };
    const moves: Partial<Record<Role, string>> = {};
    for (const role of due) {
      const legal = game.legalMoves(state, role);
      moves[role] = legal[(choices[(step * 2 + roles.indexOf(role)) % choices.length] ?? 0) % legal.length] as string;
    }
    states.push(game.play(state, moves));
  }
}

const played = { seed: fc.integer(), choices: fc.array(fc.nat(1_000), { minLength: 1, maxLength: 84 }) };

describe.each(games)("%s", (_, game, longest) => {
  it("ends, sums to zero, and changes no earlier state, whatever legal moves are played", () => {
    fc.assert(
      fc.property(played.seed, played.choices, (seed, choices) => {
        const before = JSON.stringify(game.begin(seed));
        const { states, last } = playOut(game, seed, choices);
        expect(states.length - 1).toBeLessThanOrEqual(longest);
        const { white, black } = game.scores(last);
        expect(white + black).toBe(0);
        expect(JSON.stringify(states[0])).toBe(before);
      }),
    );
  });

  it("goes on the same from a state that was written as JSON and read again", () => {
    fc.assert(
      fc.property(played.seed, played.choices, (seed, choices) => {
        for (const state of playOut(game, seed, choices).states) {
          const copy: unknown = JSON.parse(JSON.stringify(state));
          expect(game.turnOf(copy)).toEqual(game.turnOf(state));
          for (const role of roles) expect(game.view(copy, role)).toBe(game.view(state, role));
        }
      }),
    );
  });

  it("suggests legal moves only", () => {
    fc.assert(
      fc.property(played.seed, played.choices, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (seed, choices, random) => {
        for (const state of playOut(game, seed, choices).states)
          for (const role of game.turnOf(state)) expect(game.legalMoves(state, role)).toContain(game.suggest(state, role, random));
      }),
    );
  });
});

/** The position after pieces were dropped into these columns in turn. */
function after(columns: string): ConnectFourState {
  let state = connectFour.begin(0);
  for (const move of columns) state = connectFour.play(state, { [state.next]: move });
  return state;
}

describe("connect four", () => {
  it.each([
    ["a column", "1212121", "white"],
    ["a row", "1122334", "white"],
    ["a rising diagonal", "12233434414", "white"],
    ["a falling diagonal", "76655454474", "white"],
  ])("finds %s in %s", (_, columns, winner) => {
    expect(winnerOf(after(columns))).toBe(winner);
  });

  it("finds a column of black", () => {
    expect(winnerOf(after("21314161"))).toBe("black");
  });

  it("does not take a piece in a full column", () => {
    expect(connectFour.legalMoves(after("111111"), "white")).toEqual(["2", "3", "4", "5", "6", "7"]);
  });

  it("suggests a move that wins, else one that keeps the other from winning", () => {
    expect(connectFour.suggest(after("121212"), "white", 0)).toBe("1");
    expect(connectFour.suggest(after("12121"), "black", 0)).toBe("1");
  });
});

describe("rock-paper-scissors", () => {
  it.each([
    ["rock", "rock", 0],
    ["rock", "paper", -1],
    ["rock", "scissors", 1],
    ["paper", "rock", 1],
    ["paper", "paper", 0],
    ["paper", "scissors", -1],
    ["scissors", "rock", -1],
    ["scissors", "paper", 1],
    ["scissors", "scissors", 0],
  ])("pays white for %s against %s: %i", (white, black, won) => {
    const rounds = Array.from({ length: 3 }, () => ({ white, black }));
    expect(rockPaperScissors.scores({ rounds }).white).toBe(won);
  });
});
