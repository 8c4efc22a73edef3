import { type AgentName, agentNames, type ModelApi, modelApis, type ScriptedActions } from "@aenv/rollout";
import { type Command, Option } from "commander";
import { collectPair } from "../options/pairs.ts";
import { integer } from "../options/values.ts";

/** Which model, and where. */
export interface ModelOptions {
  readonly model?: string;
  readonly baseUrl?: string;
  readonly modelKey?: string;
  readonly sampling?: Readonly<Record<string, string>>;
}

export interface AgentOptions extends ModelOptions {
  readonly agent: AgentName;
  readonly agentFile?: string;
  /** Instead of a file, for the agent of a run that is played again. */
  readonly actions?: ScriptedActions;
  readonly replayFrom?: string;
  readonly api?: ModelApi;
  readonly contextTokens?: number;
  readonly stream?: boolean;
  readonly tokens?: boolean;
  readonly inside?: boolean;
  readonly install?: string;
  readonly installFiles?: string;
  readonly agentUser?: string;
}

export function addModelOptions(command: Command, modelText: string): Command {
  return command
    .option("-m, --model <name>", modelText)
    .option("--base-url <url>", "the model's endpoint; $OPENAI_BASE_URL or $ANTHROPIC_BASE_URL if not given")
    .option("--model-key <key>", "the key for the endpoint; $OPENAI_API_KEY or $ANTHROPIC_API_KEY if not given")
    .option("--sampling <KEY=VALUE>", "a setting of the model's request, e.g. temperature=0.7; may be repeated", collectPair);
}

export function addAgentOptions(command: Command): Command {
  const withAgent = command
    .addOption(
      new Option("-a, --agent <kind>", "who plays: the environment's own solution, a model, or a program")
        .choices(agentNames)
        .default("oracle"),
    )
    .option("--agent-file <file>", "the TypeScript or JavaScript file of the agent 'module', or the JSON file of the agent 'scripted'")
    .option("--replay-from <run>", "the run whose episodes the agent 'replay' plays again")
    .option("--inside", "run the program of the agent 'command' in the sandbox of each episode")
    .option("--install <script>", "with --inside: a shell script that is run as root in the sandbox first")
    .option("--install-files <folder>", "with --inside: a folder that is copied to /opt/agent in the sandbox first")
    .option("--agent-user <name>", "with --inside: the user that runs the program; root if not given");
  return addModelOptions(withAgent, "the model, for the agents 'openai', 'anthropic' and 'terminal', and for programs")
    .addOption(
      new Option("--api <api>", "the API of the agents 'openai' and 'terminal'; messages is Anthropic's")
        .choices(modelApis)
        .default("chat"),
    )
    .option("--context-tokens <number>", "for the agent 'terminal': shorten old outputs beyond so many tokens", integer(1_000, 100_000_000))
    .option("--stream", "ask the model for streamed answers")
    .option("--tokens", "record token ids and log-probabilities; the endpoint must return them");
}
