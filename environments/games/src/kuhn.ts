import { type Game, type Role, randomAt, type Scores, winFor } from "./game.ts";

/** A hand of Kuhn poker: one card each of three, one bet. */
export interface KuhnState {
  /** 0 is the jack, 1 the queen, 2 the king. */
  readonly cards: Readonly<Record<Role, number>>;
  readonly history: readonly string[];
}

const NAMES = ["jack", "queen", "king"] as const;

/** The six ways to deal two of three cards: the card of white, then that of black. */
export const deals: readonly (readonly [number, number])[] = [0, 1, 2].flatMap((white) =>
  [0, 1, 2].filter((black) => black !== white).map((black) => [white, black] as const),
);

/** What may follow each history. A history that is not here has ended the hand. */
const follows: Readonly<Record<string, readonly string[]>> = {
  "": ["check", "bet"],
  check: ["check", "bet"],
  bet: ["call", "fold"],
  "check bet": ["call", "fold"],
};

export const kuhn: Game<KuhnState> = {
  rules:
    "Kuhn poker. The deck has a jack, a queen and a king; the king is highest. Each player antes one chip and gets one card. White acts first. " +
    "A player checks, or bets one chip; who faces a bet calls it with one chip, or folds. Without a fold the higher card wins the pot.",
  moves: ["check", "bet", "call", "fold"],
  begin: (seed) => {
    const [white, black] = deals[Math.floor(randomAt(seed, 0) * deals.length)] as readonly [number, number];
    return { cards: { white, black }, history: [] };
  },
  turnOf: ({ history }) => (follows[history.join(" ")] === undefined ? [] : [history.length % 2 === 0 ? "white" : "black"]),
  legalMoves: ({ history }) => follows[history.join(" ")] ?? [],
  play: (state, moves) => ({ ...state, history: [...state.history, ...Object.values(moves)] }),
  view: ({ cards, history }, role) => `Your card is the ${NAMES[cards[role]]}. So far: ${history.join(", ") || "nothing"}.`,
  scores: ({ cards, history }): Scores => {
    if (history.at(-1) === "fold") return winFor(history.length % 2 === 0 ? "white" : "black", 1);
    return winFor(cards.white > cards.black ? "white" : "black", history.at(-1) === "call" ? 2 : 1);
  },
  stake: (state, role) => betOf(state, role),
  suggest: (state, role, random) => {
    const card = NAMES[state.cards[role]];
    const [first = "", second = ""] = kuhn.legalMoves(state, role);
    return random < chanceOfFirst(state.history, card) ? first : second;
  },
};

/** The chips of a role in the pot: its ante, and its bet if it has made one. */
function betOf({ history }: KuhnState, role: Role): number {
  const own = history.filter((_, at) => (at % 2 === 0) === (role === "white"));
  return own.some((move) => move === "bet" || move === "call") ? 2 : 1;
}

/** How often an equilibrium plays the first of the two moves: to check or to call. White loses 1/18 of a chip a hand with it. */
function chanceOfFirst(history: readonly string[], card: (typeof NAMES)[number] | undefined): number {
  const chances = {
    "": { jack: 2 / 3, queen: 1, king: 0 },
    check: { jack: 2 / 3, queen: 1, king: 0 },
    bet: { jack: 0, queen: 1 / 3, king: 1 },
    "check bet": { jack: 0, queen: 2 / 3, king: 1 },
  } as const;
  return chances[history.join(" ") as keyof typeof chances][card ?? "jack"];
}
