export const roles = ["white", "black"] as const;
export type Role = (typeof roles)[number];

export type Scores = Readonly<Record<Role, number>>;

/** The rules of a game for two, as pure functions of a state that is plain data. */
export interface Game<State> {
  /** What both players are told. */
  readonly rules: string;
  /** All moves that the game knows. */
  readonly moves: readonly [string, ...string[]];
  begin(seed: number): State;
  /** The roles that may act now; none if the game is over. */
  turnOf(state: State): readonly Role[];
  legalMoves(state: State, role: Role): readonly string[];
  /** The state after legal moves of all roles whose turn it is. */
  play(state: State, moves: Readonly<Partial<Record<Role, string>>>): State;
  /** What the role sees; nothing that the other one hides. */
  view(state: State, role: Role): string;
  /** The scores of a game that is over; they sum to 0. */
  scores(state: State): Scores;
  /** What the other player gets from a role that gives up. */
  stake(state: State, role: Role): number;
  /** A good move for the role. The number, in [0, 1), decides between moves that should be mixed. */
  suggest(state: State, role: Role, random: number): string;
}

export function otherOf(role: Role): Role {
  return role === "white" ? "black" : "white";
}

/** The winner gets from the loser. */
export function winFor(winner: Role | null, amount: number): Scores {
  if (winner === null) return { white: 0, black: 0 };
  return winner === "white" ? { white: amount, black: -amount } : { white: -amount, black: amount };
}

/** A number in [0, 1) that is the same for the same seed and position (mulberry32). */
export function randomAt(seed: number, position: number): number {
  let mixed = (seed + Math.imul(position + 1, 0x6d2b79f5)) | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}
