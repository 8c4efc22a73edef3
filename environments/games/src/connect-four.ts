import { type Game, otherOf, type Role, winFor } from "./game.ts";

/** Columns from left to right, each from the bottom to the top. */
export interface ConnectFourState {
  readonly columns: readonly (readonly Role[])[];
  readonly next: Role;
}

const WIDTH = 7;
const HEIGHT = 6;
/** Right, up, and both diagonals. */
const DIRECTIONS = [
  [1, 0],
  [0, 1],
  [1, 1],
  [1, -1],
] as const;
const SIGNS = { white: "O", black: "X" } as const;
/** The middle is in most lines of four. */
const MIDDLE_FIRST = ["4", "3", "5", "2", "6", "1", "7"];

export const connectFour: Game<ConnectFourState> = {
  rules:
    "Connect four. The board has seven columns, 1 to 7, of six places. White moves first. A move drops a piece into a column, where it falls to the " +
    "lowest free place. Four pieces in a row, in a column or in a diagonal win; a full board is a draw.",
  moves: ["1", "2", "3", "4", "5", "6", "7"],
  begin: () => ({ columns: Array.from({ length: WIDTH }, () => []), next: "white" }),
  turnOf: (state) => (winnerOf(state) !== null || isFull(state) ? [] : [state.next]),
  legalMoves: ({ columns }) => connectFour.moves.filter((move) => (columns[Number(move) - 1]?.length ?? HEIGHT) < HEIGHT),
  play: (state, moves) => drop(state, moves[state.next] ?? ""),
  view: (state, role) => `${boardOf(state)}\nYou are ${SIGNS[role]}. It is ${SIGNS[state.next]}'s turn.`,
  scores: (state) => winFor(winnerOf(state), 1),
  stake: () => 1,
  suggest: (state, role) => {
    const legal = MIDDLE_FIRST.filter((move) => connectFour.legalMoves(state, role).includes(move));
    const wins = (from: ConnectFourState, by: Role) => legal.find((move) => winnerOf(drop({ ...from, next: by }, move)) === by);
    // To win, else to keep the other from winning at once, else the middle where it does not help the other.
    const safe = legal.find((move) => wins(drop(state, move), otherOf(role)) === undefined);
    return wins(state, role) ?? wins(state, otherOf(role)) ?? safe ?? legal[0] ?? "";
  },
};

/** The role with four in a line; null if there is none. */
export function winnerOf({ columns }: ConnectFourState): Role | null {
  const at = (x: number, y: number) => columns[x]?.[y];
  for (let x = 0; x < WIDTH; x++)
    for (let y = 0; y < HEIGHT; y++)
      for (const [dx, dy] of DIRECTIONS) {
        const role = at(x, y);
        if (role !== undefined && [1, 2, 3].every((step) => at(x + step * dx, y + step * dy) === role)) return role;
      }
  return null;
}

function isFull({ columns }: ConnectFourState): boolean {
  return columns.every((column) => column.length >= HEIGHT);
}

function drop({ columns, next }: ConnectFourState, move: string): ConnectFourState {
  const dropped = columns.map((column, at) => (at === Number(move) - 1 && column.length < HEIGHT ? [...column, next] : column));
  return { columns: dropped, next: otherOf(next) };
}

function boardOf({ columns }: ConnectFourState): string {
  const rows = Array.from({ length: HEIGHT }, (_, at) => {
    const y = HEIGHT - 1 - at;
    return columns.map((column) => (column[y] === undefined ? "." : SIGNS[column[y]])).join(" ");
  });
  return [...rows, connectFour.moves.join(" ")].join("\n");
}
