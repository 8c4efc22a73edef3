import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { noopAgent } from "../agents/scripted.ts";
import { assignPlayers, describePlayers, modelsOf, type Players, roleProblem } from "./players.ts";

const named = (model: string | null) => ({ agent: noopAgent(), model, trainable: model !== null });
const two: Players = { roles: { white: [named("a")], black: [named("b")] }, rotates: false };

describe("players", () => {
  it("play their own roles, and with rotation each role for every second seed", () => {
    const who = (players: Players, seed: number) =>
      [...assignPlayers(players, ["white", "black"], seed)].map(([role, { player }]) => [role, player]);
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const own = [
          ["white", "white"],
          ["black", "black"],
        ];
        const exchanged = [
          ["white", "black"],
          ["black", "white"],
        ];
        expect(who(two, seed)).toEqual(own);
        expect(who({ ...two, rotates: true }, seed)).toEqual(seed % 2 === 0 ? own : exchanged);
      }),
    );
  });

  it("of a list are drawn by the seed: the same for the same seed, and each about equally often", () => {
    const players: Players = { roles: { white: [named("a")], black: ["b", "c", "d"].map(named) }, rotates: false };
    const drawn = Array.from({ length: 3_000 }, (_, seed) => assignPlayers(players, ["white", "black"], seed).get("black")?.model);
    expect(drawn).toEqual(drawn.map((_, seed) => assignPlayers(players, ["white", "black"], seed).get("black")?.model));
    for (const model of ["b", "c", "d"]) expect(drawn.filter((one) => one === model).length).toBeGreaterThan(900);
    expect([modelsOf(players), modelsOf(two)]).toEqual(["a, b, c, d", "a, b"]);
  });

  it("of two roles have seeds of their own", () => {
    const seeds = [...assignPlayers(two, ["white", "black"], 7).values()].map(({ seed }) => seed);
    expect(new Set(seeds).size).toBe(2);
  });

  it("are described without secrets, and the same whoever was drawn", () => {
    expect(describePlayers(two)).toEqual({
      name: "players",
      settings: {
        players: {
          white: [{ agent: "noop", settings: {}, model: "a", trainable: true }],
          black: [{ agent: "noop", settings: {}, model: "b", trainable: true }],
        },
        rotate: false,
      },
    });
  });

  it.each([
    [["white", "black"], ["white", "black"], null],
    [["white"], ["white", "black"], "the role 'black' has no player; its roles are white, black"],
    [["white", "blcak"], ["white", "black"], "the environment has no role 'blcak'; its roles are white, black"],
    [["white"], [], "the environment has no roles, so it is played by one agent and not by players"],
  ])("%j fit the roles %j or not: %s", (given, roles, problem) => {
    expect(roleProblem(given, roles)).toBe(problem);
  });
});
