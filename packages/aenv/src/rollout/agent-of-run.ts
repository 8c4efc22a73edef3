import { isObject } from "@aenv/contract";
import { agentNames, modelApis, type RunSettings, scriptedActions } from "@aenv/rollout";
import * as z from "zod";
import { Failure } from "../terminal/failure.ts";
import type { AgentOptions } from "./agent-options.ts";
import type { PlayerOptions, PlayerSpec } from "./player-options.ts";

/** The options that made the agent of a run. */
export function agentOfRun({ agent: { name, settings }, model }: Pick<RunSettings, "agent" | "model">): {
  agent: AgentOptions & PlayerOptions;
  program: readonly string[];
} {
  const ofPlayers = runPlayers.safeParse(settings);
  if (name === "players" && ofPlayers.success) return { agent: { agent: "noop", ...playersOf(ofPlayers.data) }, program: [] };
  const { path, command, actions, run, api, baseUrl, sampling = {}, streams, wantsTokens, contextTokens } = settings;
  const withModel = { ...(model !== null && { model }), tokens: wantsTokens === true };
  // The module decides its agent's name and further settings.
  if (typeof path === "string") return { agent: { agent: "module", agentFile: path, ...withModel }, program: [] };
  const known = agentNames.find((one) => one === name);
  if (known === undefined) {
    throw new Failure(`the agent '${name}' cannot be made again from its settings`, {
      exit: "usage",
      hint: "Play the run again with: aenv rollout",
    });
  }
  const scripted = scriptedActions.safeParse(actions);
  const knownApi = modelApis.find((one) => one === api);
  const pairs = Object.entries(sampling as object).map(([key, value]) => [key, JSON.stringify(value)]);
  return {
    agent: {
      agent: known,
      ...withModel,
      ...(scripted.success && { actions: scripted.data }),
      ...(typeof run === "string" && { replayFrom: run }),
      ...(typeof baseUrl === "string" && { baseUrl }),
      ...(knownApi && { api: knownApi }),
      ...(typeof contextTokens === "number" && { contextTokens }),
      ...insideOf(settings.inside),
      stream: streams === true,
      sampling: Object.fromEntries(pairs),
    },
    program: Array.isArray(command) ? command.map(String) : [],
  };
}

/** As `describePlayers` writes them. */
const runPlayers = z.object({
  players: z.record(
    z.string(),
    z.array(
      z.object({ agent: z.string(), settings: z.record(z.string(), z.unknown()), model: z.string().nullable(), trainable: z.boolean() }),
    ),
  ),
  rotate: z.boolean(),
});

function playersOf({ players, rotate }: z.infer<typeof runPlayers>): PlayerOptions {
  const player = Object.entries(players).flatMap(([role, all]) =>
    all.map(({ agent: name, settings, model, trainable }): PlayerSpec => {
      const { agent } = agentOfRun({ agent: { name, settings }, model });
      return { role, agent, trainable };
    }),
  );
  return { player, rotate };
}

function insideOf(inside: unknown): Partial<AgentOptions> {
  if (!isObject(inside)) return {};
  const { install, files, user } = inside;
  return {
    inside: true,
    ...(typeof install === "string" && { install }),
    ...(typeof files === "string" && { installFiles: files }),
    ...(typeof user === "string" && { agentUser: user }),
  };
}
