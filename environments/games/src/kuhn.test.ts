import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { randomAt } from "./game.ts";
import { deals, type KuhnState, kuhn } from "./kuhn.ts";

const [JACK, QUEEN, KING] = [0, 1, 2];

/** What white wins, for each history that ends a hand and each deal: the card of white, then that of black. */
const leaves: Readonly<Record<string, readonly (readonly [number | undefined, number | undefined, number])[]>> = {
  "check check": [
    [JACK, QUEEN, -1],
    [JACK, KING, -1],
    [QUEEN, JACK, 1],
    [QUEEN, KING, -1],
    [KING, JACK, 1],
    [KING, QUEEN, 1],
  ],
  "check bet fold": [
    [JACK, QUEEN, -1],
    [JACK, KING, -1],
    [QUEEN, JACK, -1],
    [QUEEN, KING, -1],
    [KING, JACK, -1],
    [KING, QUEEN, -1],
  ],
  "check bet call": [
    [JACK, QUEEN, -2],
    [JACK, KING, -2],
    [QUEEN, JACK, 2],
    [QUEEN, KING, -2],
    [KING, JACK, 2],
    [KING, QUEEN, 2],
  ],
  "bet fold": [
    [JACK, QUEEN, 1],
    [JACK, KING, 1],
    [QUEEN, JACK, 1],
    [QUEEN, KING, 1],
    [KING, JACK, 1],
    [KING, QUEEN, 1],
  ],
  "bet call": [
    [JACK, QUEEN, -2],
    [JACK, KING, -2],
    [QUEEN, JACK, 2],
    [QUEEN, KING, -2],
    [KING, JACK, 2],
    [KING, QUEEN, 2],
  ],
};

const table = Object.entries(leaves).flatMap(([history, rows]) =>
  rows.map(([white, black, won]) => ({ history, white: white as number, black: black as number, won })),
);

describe("Kuhn poker", () => {
  it("has 30 leaves", () => {
    expect(table.length).toBe(30);
    expect(ends({ cards: { white: 0, black: 1 }, history: [] }).sort()).toEqual(Object.keys(leaves).sort());
  });

  it.each(table)("pays white $won after $history with $white against $black", ({ history, white, black, won }) => {
    let state: KuhnState = { cards: { white, black }, history: [] };
    for (const [at, move] of history.split(" ").entries()) {
      const role = at % 2 === 0 ? "white" : "black";
      expect(kuhn.turnOf(state)).toEqual([role]);
      expect(kuhn.legalMoves(state, role)).toContain(move);
      state = kuhn.play(state, { [role]: move });
    }
    expect(kuhn.turnOf(state)).toEqual([]);
    expect(kuhn.scores(state)).toEqual({ white: won, black: won === 0 ? 0 : -won });
  });

  it("deals two different cards, each deal about as often", () => {
    const counts = new Map<string, number>();
    for (let seed = 0; seed < 6_000; seed++) {
      const { cards } = kuhn.begin(seed);
      counts.set(`${cards.white}${cards.black}`, (counts.get(`${cards.white}${cards.black}`) ?? 0) + 1);
    }
    expect([...counts.keys()].sort()).toEqual(deals.map((deal) => deal.join("")).sort());
    for (const count of counts.values()) expect(count).toBeGreaterThan(850);
  });

  it("shows a player its own card only", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const state = kuhn.begin(seed);
        const others = { ...state, cards: { ...state.cards, black: state.cards.black === 2 ? 1 : 2 } };
        expect(kuhn.view(others, "white")).toBe(kuhn.view(state, "white"));
      }),
    );
  });

  it("has an oracle that cannot be beaten: white wins -1/18 a hand on average, whatever black does", () => {
    // The frequencies of its moves, by counting over many random numbers, against each pure answer of black.
    const answers = [0, 1].flatMap((jack) => [0, 1].flatMap((queen) => [0, 1].map((king) => [jack, queen, king] as const)));
    const values = answers.flatMap((afterCheck) => answers.map((afterBet) => valueOfWhite(afterCheck, afterBet)));
    expect(Math.min(...values)).toBeGreaterThan(-1 / 18 - 0.02);
    expect(Math.min(...values)).toBeLessThan(-1 / 18 + 0.02);
  });
});

/** The histories that end a hand. */
function ends(state: KuhnState): string[] {
  const [role] = kuhn.turnOf(state);
  if (role === undefined) return [state.history.join(" ")];
  return kuhn.legalMoves(state, role).flatMap((move) => ends(kuhn.play(state, { [role]: move })));
}

type Answers = readonly [number, number, number];

/** White plays the oracle; black plays the move of this number, for each of its cards, after a check and after a bet. */
function valueOfWhite(afterCheck: Answers, afterBet: Answers): number {
  const HANDS = 200;
  let sum = 0;
  for (const [white, black] of deals)
    for (let hand = 0; hand < HANDS; hand++) {
      let state: KuhnState = { cards: { white, black }, history: [] };
      for (let [role] = kuhn.turnOf(state); role !== undefined; [role] = kuhn.turnOf(state)) {
        // Even steps through [0, 1), in an order of their own for the second decision.
        const random = (((hand * (state.history.length === 0 ? 1 : 73)) % HANDS) + 0.5) / HANDS;
        const answer = (state.history.at(-1) === "bet" ? afterBet : afterCheck)[state.cards.black];
        const move = role === "white" ? kuhn.suggest(state, role, random) : (kuhn.legalMoves(state, role)[answer ?? 0] as string);
        state = kuhn.play(state, { [role]: move });
      }
      sum += kuhn.scores(state).white;
    }
  return sum / (HANDS * deals.length);
}

describe("randomAt", () => {
  it("is the same for the same seed and position, and in [0, 1)", () => {
    fc.assert(
      fc.property(fc.integer(), fc.nat(1_000), (seed, position) => {
        const random = randomAt(seed, position);
        expect(random).toBe(randomAt(seed, position));
        expect(random >= 0 && random < 1).toBe(true);
      }),
    );
  });
});
