import { type AgentName, agentNames } from "@aenv/rollout";
import { type Command, InvalidArgumentError, Option } from "commander";
import { collect } from "../options/pairs.ts";
import type { AgentOptions } from "./agent-options.ts";

/** An agent for a role, as `--player` names it. */
export interface PlayerSpec {
  readonly role: string;
  readonly agent: AgentOptions;
  /** Whether its turns are training data; decided by what plays if absent. */
  readonly trainable?: boolean;
}

export interface PlayerOptions {
  readonly player?: readonly PlayerSpec[];
  readonly rotate?: boolean;
  readonly train?: readonly string[];
}

/** What stands after the colon of an agent, and the option that it is. */
const ARGUMENTS = {
  openai: "model",
  anthropic: "model",
  terminal: "model",
  scripted: "agentFile",
  module: "agentFile",
  replay: "replayFrom",
} as const;
const FORM =
  "Write ROLE=AGENT, such as white=oracle, white=openai:MODEL, white=openai:MODEL@http://127.0.0.1:8000/v1 or white=scripted:actions.json.";

export function addPlayerOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--player <ROLE=AGENT>",
        "who plays a role, in an environment with roles: oracle, random, noop, openai:MODEL, anthropic:MODEL, terminal:MODEL, scripted:FILE, module:FILE or replay:RUN. A model may have an endpoint of its own: openai:MODEL@URL. Needed once for each role; of several for a role, one is drawn by the seed of the episode",
      )
        .argParser(collectPlayer)
        .conflicts(["agent", "model", "agentFile", "replayFrom", "inside", "forkAt"]),
    )
    .option("--rotate", "with --player: players exchange their roles, by the seed of the episode")
    .option(
      "--train <role>",
      "with --player: the role whose player is trained, may be repeated; without it, each role that has one player, a model",
      collect,
    );
}

function collectPlayer(text: string, known: readonly PlayerSpec[] = []): PlayerSpec[] {
  const at = text.indexOf("=");
  const [role, agent] = [text.slice(0, Math.max(0, at)).trim(), text.slice(at + 1).trim()];
  if (role === "" || agent === "") throw new InvalidArgumentError(FORM);
  return [...known, { role, agent: parseAgent(agent) }];
}

function parseAgent(text: string): AgentOptions {
  const colon = text.indexOf(":");
  const [name, argument] = colon < 0 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 1)];
  const kind = agentNames.find((one) => one === name);
  if (kind === undefined || kind === "command") {
    const kinds = agentNames.filter((one) => one !== "command").join(", ");
    const why = kind === "command" ? "The agent 'command' is a program, which cannot play a role" : `There is no agent '${name}'`;
    throw new InvalidArgumentError(`${why}; there are: ${kinds}.`);
  }
  const option = (ARGUMENTS as Partial<Record<AgentName, "model" | "agentFile" | "replayFrom">>)[kind];
  if (option === undefined) {
    if (argument !== "") throw new InvalidArgumentError(`The agent '${kind}' takes nothing after a colon. ${FORM}`);
    return { agent: kind };
  }
  if (argument === "")
    throw new InvalidArgumentError(`The agent '${kind}' needs a ${option === "model" ? "model" : "name"}: ${kind}:NAME. ${FORM}`);
  if (option !== "model") return { agent: kind, [option]: argument };
  const url = argument.search(/@https?:\/\//);
  return url < 0 ? { agent: kind, model: argument } : { agent: kind, model: argument.slice(0, url), baseUrl: argument.slice(url + 1) };
}
