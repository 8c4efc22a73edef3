import type { ModelApi } from "../models/dialect.ts";
import type { ModelHttp } from "../models/http.ts";
import type { Agent } from "../player/agent.ts";
import { type RecordedRun, replayOfRun, type ScriptedActions, scriptedByTask } from "./by-task.ts";
import { commandAgent } from "./command.ts";
import { type InsideOptions, insideAgent } from "./inside.ts";
import { type Model, modelAgent } from "./model.ts";
import { moduleAgent } from "./module.ts";
import { randomAgent } from "./random.ts";
import { noopAgent, oracleAgent } from "./scripted.ts";
import { terminalAgent } from "./terminal.ts";

/** An agent that is chosen by its name. */
export interface NamedAgent {
  /** Whether the agent asks the model by itself, or its program reaches the model through the recording server. */
  readonly model: "asked" | "recorded" | "none";
  open(choice: AgentChoice): Agent | Promise<Agent>;
}

/** What was chosen for an agent beside its name. A method throws if its value was not chosen; the error says how to choose it. */
export interface AgentChoice {
  /** Undefined if the agent's own default holds. */
  readonly contextTokens: number | undefined;
  /** The model and its client. `api` is the only API that the agent speaks, if there is only one. */
  model(api?: ModelApi): readonly [Model, ModelHttp];
  /** A file of this machine that holds the agent. */
  file(): string;
  actions(): ScriptedActions;
  /** A run that is played again, and how it was named. */
  run(): readonly [RecordedRun, string];
  program(): ChosenProgram;
}

export interface ChosenProgram extends InsideOptions {
  /** The working folder of a program that runs on this machine. */
  readonly folder: string;
  readonly isInside: boolean;
}

export const namedAgents = {
  oracle: { model: "none", open: oracleAgent },
  openai: { model: "asked", open: (choice) => modelAgent(...choice.model()) },
  anthropic: { model: "asked", open: (choice) => modelAgent(...choice.model("messages")) },
  terminal: { model: "asked", open: (choice) => terminalAgent(...choice.model(), choice) },
  random: { model: "none", open: () => randomAgent() },
  noop: { model: "none", open: noopAgent },
  scripted: { model: "none", open: (choice) => scriptedByTask(choice.actions()) },
  replay: { model: "none", open: (choice) => replayOfRun(...choice.run()) },
  module: { model: "recorded", open: (choice) => moduleAgent(choice.file()) },
  command: { model: "recorded", open: (choice) => programAgent(choice.program()) },
} as const satisfies Record<string, NamedAgent>;

export type AgentName = keyof typeof namedAgents;

export const agentNames = Object.keys(namedAgents) as AgentName[];

function programAgent({ isInside, folder, ...inside }: ChosenProgram): Agent {
  return isInside ? insideAgent(inside) : commandAgent({ command: inside.command, folder });
}
