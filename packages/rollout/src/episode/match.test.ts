import type { Trajectory } from "@aenv/contract";
import type { EnvironmentDefinition } from "@aenv/kit";
import { describe, expect, it } from "vitest";
import { answering, bold, careful, kuhn, serveGame, shapes } from "../fixtures/games.ts";
import { newTrajectory } from "../fixtures/trajectory.ts";
import type { TurnAgent } from "../player/agent.ts";
import { ModelError } from "../player/failure.ts";
import type { Players } from "../player/players.ts";
import { replay } from "../replay/replay.ts";
import { comparable } from "../replay/same.ts";
import { scoreOf, summarise } from "../stats/summary.ts";
import { ForkedGroups } from "./forked-groups.ts";
import { playEpisode } from "./play.ts";
import { type OwnPlayOptions, playOptions } from "./play-options.ts";

const never = new AbortController().signal;
const player = (agent: TurnAgent, trainable = true) => ({ agent, model: null, trainable });

function playersOf(roles: Readonly<Record<string, TurnAgent>>, rotates = false): Players {
  return { roles: Object.fromEntries(Object.entries(roles).map(([role, agent]) => [role, [player(agent)]])), rotates };
}

/** Plays episodes of a game one after the other on one instance. */
async function table(definition: EnvironmentDefinition) {
  const game = await serveGame(definition);
  const instance = await game.open();
  const play = (players: Players | TurnAgent, seed = 1, own: Partial<OwnPlayOptions> = {}): Promise<Trajectory> =>
    playEpisode(
      { id: `e${seed}`, run: null, attempt: 0, task: { id: null, split: null, index: null }, group: null, seed, metadata: {} },
      playOptions({
        agent: "roles" in players ? bold : players,
        ...("roles" in players && { players }),
        limits: {},
        deadlineMs: 30_000,
        recordsDigests: true,
        acquire: async () => ({ instance, provenance: newTrajectory().provenance, release: async () => {} }),
        provenance: { model: null, client_version: "0" },
        cancel: never,
        ...own,
      }),
    );
  return {
    play,
    replay: (trajectory: Trajectory) => replay(trajectory, { instance, signal: never, now: () => performance.now() }),
    [Symbol.asyncDispose]: async () => {
      await instance.release();
      await game[Symbol.asyncDispose]();
    },
  };
}

describe("an episode of several agents, one after the other", () => {
  it("has one timeline, and each role has only what it saw", async () => {
    await using kuhnTable = await table(kuhn);
    // The first has a jack, the second a queen: the jack passes, the queen bets with `bold`, the jack folds.
    const { messages, roles, steps, outcome, stop_reason, tools, provenance } = await kuhnTable.play(
      playersOf({ first: careful, second: bold }),
      0,
    );
    expect({ messages, stop_reason, steps: steps.map(({ index, role, call }) => [index, role, call.arguments.move]) }).toEqual({
      messages: [],
      stop_reason: "done",
      steps: [
        [0, "first", "p"],
        [1, "second", "b"],
        [2, "first", "p"],
      ],
    });
    expect(outcome).toMatchObject({ kind: "scored", reward: 0 });
    expect(roles?.first).toMatchObject({ outcome: { kind: "scored", reward: -1 }, agent: "careful", player: "first", trainable: true });
    expect(roles?.second).toMatchObject({ outcome: { kind: "scored", reward: 1 }, agent: "bold" });
    expect(roles?.first?.messages.map(({ role, content }) => [role, content])).toEqual([
      ["user", "Your card is J."],
      ["assistant", ""],
      ["tool", "p"],
      ["user", '{"card":"J","history":"pb"}'],
      ["assistant", ""],
      ["tool", "pbp"],
    ]);
    expect(JSON.stringify(roles?.second?.messages)).not.toContain("J");
    expect(steps.map(({ role, message }) => roles?.[role as string]?.messages[message as number]?.role)).toEqual(
      Array(3).fill("assistant"),
    );
    expect([roles?.first?.tools.map(({ name }) => name), tools.map(({ name }) => name)]).toEqual([["act"], ["act"]]);
    expect(provenance).toMatchObject({ agent: "players", agent_settings: { rotate: false, players: { first: [{ agent: "careful" }] } } });
  });

  it("of 1,000 hands of Kuhn poker sum to zero, and each is equal when it is replayed", { timeout: 120_000 }, async () => {
    await using kuhnTable = await table(kuhn);
    const hands: Trajectory[] = [];
    const players = playersOf({ first: careful, second: bold }, true);
    for (let seed = 0; seed < 1_000; seed++) hands.push(await kuhnTable.play(players, seed, { recordsDigests: false }));
    const chips = { first: 0, second: 0 };
    for (const { outcome, roles } of hands) {
      expect(outcome).toMatchObject({ kind: "scored", reward: 0 });
      for (const name of ["first", "second"] as const) {
        const own = roles?.[name]?.outcome;
        chips[name] += own?.kind === "scored" ? own.reward : Number.NaN;
      }
    }
    expect(chips.first + chips.second).toBe(0);
    expect(chips.first).not.toBe(0);
    const { roles, players: byPlayer } = summarise(hands.map(scoreOf), { passReward: 1 });
    expect([roles?.first?.episodes, roles?.second?.scored, byPlayer?.first?.episodes]).toEqual([1_000, 1_000, 1_000]);
    for (const hand of hands.slice(0, 12)) expect(await kuhnTable.replay(hand)).toEqual({ kind: "equal", steps: hand.steps.length });
  });

  it("is played by one agent in every role if there are no players", async () => {
    await using kuhnTable = await table(kuhn);
    const { roles } = await kuhnTable.play(bold, 2);
    expect([roles?.first?.agent, roles?.second?.agent]).toEqual(["bold", "bold"]);
  });

  it("refuses players that do not fit the roles, and says which", async () => {
    await using kuhnTable = await table(kuhn);
    const message = async (roles: Record<string, TurnAgent>) => (await kuhnTable.play(playersOf(roles))).outcome;
    expect(await message({ first: bold })).toMatchObject({
      kind: "unscored",
      cause: "environment",
      retryable: false,
      message: "the role 'second' has no player; its roles are first, second",
    });
    expect(await message({ first: bold, black: bold })).toMatchObject({
      message: "the environment has no role 'black'; its roles are first, second",
    });
  });

  it("cannot be forked", async () => {
    await using game = await serveGame(kuhn);
    await using instance = await game.open();
    const options = playOptions({
      agent: bold,
      limits: {},
      deadlineMs: 30_000,
      acquire: async () => ({ instance, provenance: newTrajectory().provenance, release: async () => {} }),
      provenance: { model: null, client_version: "0" },
      cancel: never,
    });
    await using forks = new ForkedGroups(options, 1);
    const spec = { id: "e", run: null, attempt: 0, task: { id: null, split: null, index: null }, group: null, seed: 1, metadata: {} };
    expect((await forks.play(spec)).outcome).toMatchObject({
      kind: "unscored",
      message: expect.stringContaining("has the roles first, second"),
    });
  });
});

describe("an episode of several agents at once", () => {
  const show = (name: string, shape: string) => answering(name, () => ({ tool: "show", arguments: { shape } }));

  it("asks all whose turn it is, and none sees what the other has chosen before both have", async () => {
    await using shapesTable = await table(shapes);
    let thinking = 0;
    let most = 0;
    const slow = (shape: string): TurnAgent => {
      const agent = show("slow", shape);
      return {
        ...agent,
        begin: async (start) => {
          const inner = await agent.begin(start);
          return {
            ...inner,
            next: async (...args) => {
              most = Math.max(most, ++thinking);
              await new Promise(setImmediate);
              thinking--;
              return inner.next(...args);
            },
          };
        },
      };
    };
    const trajectory = await shapesTable.play(playersOf({ left: slow("r"), right: slow("s") }));
    expect(most).toBe(2);
    expect(trajectory.roles?.left?.outcome).toMatchObject({ reward: 3 });
    expect(trajectory.steps.map(({ role }) => role)).toEqual(["left", "right", "left", "right", "left", "right"]);
    const seen = (role: string) => trajectory.roles?.[role]?.messages.filter(({ role: by }) => by === "user").map(({ content }) => content);
    expect(seen("right")).toEqual(seen("left"));
    expect(seen("right")?.at(-1)).toBe("rounds: rs rs");
    const again = await shapesTable.play(playersOf({ left: slow("r"), right: slow("s") }));
    expect(comparable(again)).toEqual(comparable(trajectory));
    expect(await shapesTable.replay(trajectory)).toEqual({ kind: "equal", steps: 6 });
  });
});

describe("a player that cannot go on", () => {
  /** Never answers, and does not listen to the signal either. */
  const hanging: TurnAgent = {
    name: "hanging",
    settings: {},
    begin: () => ({ next: () => new Promise(() => {}), copy: () => never as never }),
  };

  it("forfeits where the environment says what that means: the other is scored", async () => {
    await using kuhnTable = await table(kuhn);
    const trajectory = await kuhnTable.play(playersOf({ first: bold, second: hanging }), 1, { limits: { seconds: 0.05 } });
    expect(trajectory.outcome).toMatchObject({ kind: "scored", reward: 0 });
    expect(trajectory.roles?.first).toMatchObject({ outcome: { kind: "scored", reward: 1 }, stop_reason: "done" });
    expect(trajectory.roles?.second).toMatchObject({ outcome: { kind: "scored", reward: -1 }, stop_reason: "time_limit", forfeit: "time" });
    expect(await kuhnTable.replay(trajectory)).toEqual({ kind: "equal", steps: 1 });
  });

  it("leaves both unscored where it does not, and the other scored if the environment scores others", async () => {
    const without = (own: object) => ({ ...shapes, ...own }) as EnvironmentDefinition;
    const right = answering("right", () => ({ tool: "show", arguments: { shape: "r" } }));
    const cases = [without({}), without({ scoresOthers: true })];
    const played: unknown[] = [];
    for (const definition of cases) {
      await using shapesTable = await table(definition);
      const { roles, outcome } = await shapesTable.play(playersOf({ left: hanging, right }), 1, { limits: { seconds: 0.05 } });
      played.push([outcome.kind, roles?.left?.outcome, roles?.right?.outcome.kind]);
    }
    const timeout = expect.objectContaining({ kind: "unscored", cause: "timeout", message: expect.stringContaining("forfeit") });
    expect(played).toEqual([
      ["unscored", timeout, "unscored"],
      ["unscored", timeout, "scored"],
    ]);
  });

  it("may make so many invalid moves as the environment allows, words without a call among them", async () => {
    await using kuhnTable = await table(kuhn);
    const wrong = answering("wrong", (_, turn) => (turn === 0 ? "I fold." : { tool: "act", arguments: { move: "x" } }));
    const { roles, steps } = await kuhnTable.play(playersOf({ first: wrong, second: bold }));
    expect(roles?.first?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant", "tool"]);
    expect(roles?.first).toMatchObject({ outcome: { kind: "scored", reward: -1 }, forfeit: "invalid_moves" });
    expect(steps.map(({ result }) => result.is_error)).toEqual([true]);
    const failing = answering("failing", () => ({ tool: "act", arguments: { move: "x" } }));
    const { roles: others } = await kuhnTable.play(playersOf({ first: failing, second: bold }));
    expect(others?.first).toMatchObject({ outcome: { kind: "scored", reward: -1 }, forfeit: "invalid_moves" });
    expect(others?.second).toMatchObject({ outcome: { kind: "scored", reward: 1 } });
  });

  it("because its model fails makes the whole episode unscored, so that it is tried again", async () => {
    await using kuhnTable = await table(kuhn);
    const failing: TurnAgent = {
      name: "failing",
      settings: {},
      begin: () => ({ next: () => Promise.reject(new ModelError("no answer", { retryable: true })), copy: () => never as never }),
    };
    const { outcome, roles } = await kuhnTable.play(playersOf({ first: bold, second: failing }));
    expect(outcome).toMatchObject({ kind: "unscored", cause: "model", retryable: true });
    expect(roles?.first?.outcome).toEqual(outcome);
  });

  it("that has used up a limit of turns cuts the episode off for all, as it does for one agent", async () => {
    await using shapesTable = await table(shapes);
    const agent = answering("any", () => ({ tool: "show", arguments: { shape: "r" } }));
    const trajectory = await shapesTable.play(playersOf({ left: agent, right: agent }), 1, { limits: { turns: 2 } });
    expect(trajectory).toMatchObject({ stop_reason: "max_turns", truncated: true, outcome: { kind: "scored" } });
    expect(trajectory.steps).toHaveLength(4);
  });
});
