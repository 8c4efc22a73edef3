import {
  type AgentStart,
  costOfTurns,
  describePlayers,
  modelsOf,
  type Players,
  type RolePlayer,
  roleProblem,
  rolesOf,
} from "@aenv/rollout";
import { Environment } from "@aenv/sdk";
import { callServer } from "../platform/platform.ts";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { AgentOptions } from "./agent-options.ts";
import { type ChosenAgent, chooseAgent } from "./chosen-agent.ts";
import type { PlayerOptions, PlayerSpec } from "./player-options.ts";
import { type PriceOptions, pricesOf } from "./price-options.ts";
import type { Source } from "./source.ts";

type Options = AgentOptions & PlayerOptions & PriceOptions & { readonly runs?: string };

/** The players that the options name, else the one agent. */
export async function choosePlayers(
  options: Options,
  program: readonly string[],
  terminal: Terminal,
  onBusy?: (pauseMs: number) => void,
): Promise<ChosenAgent> {
  const { player: specs, rotate: rotates = false, train } = options;
  if (specs === undefined) {
    if (rotates || train !== undefined)
      throw new Failure(`--${rotates ? "rotate" : "train"} is for the players of roles`, {
        exit: "usage",
        hint: "Add: --player ROLE=AGENT",
      });
    return chooseAgent(options, program, terminal, onBusy);
  }
  const unknown = train?.find((role) => !specs.some((spec) => spec.role === role));
  if (unknown !== undefined) {
    const roles = [...new Set(specs.map(({ role }) => role))].join(", ");
    throw new Failure(`--train names '${unknown}', which has no --player; there are: ${roles}`, { exit: "usage" });
  }
  const byRole = Map.groupBy(specs, ({ role }) => role);
  const chosen: ChosenAgent[] = [];
  const roles: [string, RolePlayer[]][] = [];
  for (const [role, own] of byRole) {
    const players: RolePlayer[] = [];
    for (const spec of own) {
      const one = await chooseAgent({ ...shared(options), ...spec.agent }, [], terminal, onBusy);
      chosen.push(one);
      players.push(playerOf(one, isTrained(spec, own, train), options, terminal));
    }
    roles.push([role, players]);
  }
  const players: Players = { roles: Object.fromEntries(roles), rotates };
  const described = describePlayers(players);
  return {
    agent: { ...described, begin: (_: AgentStart) => Promise.reject(new TypeError("players are for environments with roles")) },
    players,
    upstream: null,
    modelName: modelsOf(players),
    [Symbol.asyncDispose]: async () => {
      for (const one of chosen) await one[Symbol.asyncDispose]();
    },
  };
}

/** Throws unless there are players for exactly the roles that the environment has. */
export async function checkPlayers(source: Source, players: Players | undefined, terminal: Terminal): Promise<void> {
  if (players === undefined) return;
  const abilities = await callServer(terminal, "Asking for the roles", () =>
    Environment.use(source.environment, source.options, (env) => env.episode.abilities()),
  );
  const roles = Object.keys(rolesOf(abilities));
  const problem = roleProblem(Object.keys(players.roles), roles);
  if (problem === null) return;
  const example = roles.length === 0 ? "--agent oracle" : roles.map((role) => `--player ${role}=oracle`).join(" ");
  throw new Failure(`${source.environment} cannot be played: ${problem}`, { exit: "usage", hint: `Write it as: ${example}` });
}

/** What all models have in common. */
function shared({ modelKey, baseUrl, sampling, api, contextTokens, stream, tokens, runs }: Options) {
  return {
    ...(modelKey !== undefined && { modelKey }),
    ...(baseUrl !== undefined && { baseUrl }),
    ...(sampling !== undefined && { sampling }),
    ...(api !== undefined && { api }),
    ...(contextTokens !== undefined && { contextTokens }),
    ...(stream !== undefined && { stream }),
    ...(tokens !== undefined && { tokens }),
    ...(runs !== undefined && { runs }),
  };
}

/** One of several players of a role is a frozen opponent, unless the role is named. */
function isTrained(spec: PlayerSpec, ofRole: readonly PlayerSpec[], train: readonly string[] | undefined): boolean {
  if (spec.trainable !== undefined) return spec.trainable;
  return train === undefined ? ofRole.length === 1 && spec.agent.model !== undefined : train.includes(spec.role);
}

function playerOf({ agent, modelName }: ChosenAgent, trainable: boolean, options: PriceOptions, terminal: Terminal): RolePlayer {
  if ("run" in agent) {
    throw new Failure(`the agent '${agent.name}' is a program, which cannot play a role`, {
      exit: "usage",
      hint: "Export an agent with begin() from the module.",
    });
  }
  const prices = pricesOf(options, modelName, terminal);
  return {
    agent,
    model: modelName,
    trainable,
    ...(prices !== null && { costOf: (turns) => (turns.length === 0 ? null : costOfTurns(turns, prices)) }),
  };
}
