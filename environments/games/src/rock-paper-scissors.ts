import { type Game, roles, winFor } from "./game.ts";

interface Round {
  readonly white: string;
  readonly black: string;
}

export interface RockPaperScissorsState {
  readonly rounds: readonly Round[];
}

const ROUNDS = 3;
const HANDS = ["rock", "paper", "scissors"] as const;

export const rockPaperScissors: Game<RockPaperScissorsState> = {
  rules: `Rock-paper-scissors, ${ROUNDS} rounds. Both players choose at once. Paper beats rock, scissors beat paper, rock beats scissors. Who wins more rounds wins.`,
  moves: HANDS,
  begin: () => ({ rounds: [] }),
  turnOf: ({ rounds }) => (rounds.length < ROUNDS ? roles : []),
  legalMoves: ({ rounds }) => (rounds.length < ROUNDS ? HANDS : []),
  play: ({ rounds }, { white = "", black = "" }) => ({ rounds: [...rounds, { white, black }] }),
  view: ({ rounds }, role) => {
    const lines = rounds.map((round, at) => `Round ${at + 1}: white chose ${round.white}, black chose ${round.black}.`);
    return [...lines, `You are ${role}. ${ROUNDS - rounds.length} of ${ROUNDS} rounds are left.`].join("\n");
  },
  scores: ({ rounds }) => {
    const balance = rounds.reduce((before, round) => before + pointsOf(round), 0);
    return winFor(balance === 0 ? null : balance > 0 ? "white" : "black", 1);
  },
  stake: () => 1,
  suggest: (_, __, random) => HANDS[Math.floor(random * HANDS.length)] ?? "rock",
};

/** 1 if white wins the round, -1 if black does, 0 for a draw. */
function pointsOf({ white, black }: Round): number {
  const ahead = (HANDS.indexOf(white as never) - HANDS.indexOf(black as never) + HANDS.length) % HANDS.length;
  return ahead === 0 ? 0 : ahead === 1 ? 1 : -1;
}
