import { fileURLToPath } from "node:url";
import type { Trajectory } from "@aenv/contract";
import { loadEnvironment } from "@aenv/kit";
import { expect, it } from "vitest";
import { randomAgent } from "../agents/random.ts";
import { oracleAgent } from "../agents/scripted.ts";
import { serveGame } from "../fixtures/games.ts";
import { newTrajectory } from "../fixtures/trajectory.ts";
import type { TurnAgent } from "../player/agent.ts";
import { replay } from "../replay/replay.ts";
import { playEpisode } from "./play.ts";
import { playOptions } from "./play-options.ts";

const never = new AbortController().signal;
const player = (agent: TurnAgent) => [{ agent, model: null, trainable: true }];

it.each(["kuhn", "connect-four", "rock-paper-scissors"])(
  "the built-in game %s is scored, sums to zero and is equal when it is replayed",
  async (id) => {
    const folder = fileURLToPath(new URL("../../../../environments/games", import.meta.url));
    await using game = await serveGame((await loadEnvironment(folder)).definition);
    await using instance = await game.open();
    const play = (black: TurnAgent, seed: number): Promise<Trajectory> =>
      playEpisode(
        { id: "e", run: null, attempt: 0, task: { id, split: null, index: null }, group: null, seed, metadata: {} },
        playOptions({
          agent: black,
          players: { roles: { white: player(oracleAgent()), black: player(black) }, rotates: true },
          limits: {},
          deadlineMs: 60_000,
          acquire: async () => ({ instance, provenance: newTrajectory().provenance, release: async () => {} }),
          provenance: { model: null, client_version: "0" },
          cancel: never,
        }),
      );
    for (const [seed, black] of [oracleAgent(), oracleAgent(), randomAgent(), randomAgent()].entries()) {
      const trajectory = await play(black, seed);
      expect(trajectory).toMatchObject({ stop_reason: "done", outcome: { kind: "scored", reward: 0 } });
      expect(await replay(trajectory, { instance, signal: never, now: () => performance.now() })).toEqual({
        kind: "equal",
        steps: trajectory.steps.length,
      });
      if (seed < 2) expect(Object.values(trajectory.roles ?? {}).map(({ forfeit }) => forfeit)).toEqual([undefined, undefined]);
    }
  },
);
