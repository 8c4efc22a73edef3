import { resolve } from "node:path";
import { isObject } from "@aenv/contract";
import {
  type Agent,
  commandAgent,
  insideAgent,
  type Model,
  ModelHttp,
  modelAgent,
  moduleAgent,
  noopAgent,
  oracleAgent,
  type RunSettings,
  randomAgent,
  terminalAgent,
  type UpstreamModel,
} from "@aenv/rollout";
import type { Command } from "commander";
import { Option } from "commander";
import { collectPair } from "../options/pairs.ts";
import { integer } from "../options/values.ts";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { readActions, replayOf, type ScriptedActions, scriptedActions, scriptedBy } from "./recorded-agents.ts";
import { getRun } from "./run-option.ts";

export const agentKinds = [
  "oracle",
  "openai",
  "anthropic",
  "terminal",
  "random",
  "noop",
  "scripted",
  "replay",
  "module",
  "command",
] as const;
const apis = ["chat", "responses", "messages"] as const;
type ModelApi = (typeof apis)[number];
type AgentKind = (typeof agentKinds)[number];

/** Which model, and where. */
export interface ModelOptions {
  readonly model?: string;
  readonly baseUrl?: string;
  readonly modelKey?: string;
  readonly sampling?: Readonly<Record<string, string>>;
}

export interface AgentOptions extends ModelOptions {
  readonly agent: AgentKind;
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
        .choices(agentKinds)
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
      new Option("--api <api>", "the API of the agents 'openai' and 'terminal'; messages is Anthropic's").choices(apis).default("chat"),
    )
    .option("--context-tokens <number>", "for the agent 'terminal': shorten old outputs beyond so many tokens", integer(1_000, 100_000_000))
    .option("--stream", "ask the model for streamed answers")
    .option("--tokens", "record token ids and log-probabilities; the endpoint must return them");
}

/** An agent, and the model behind it where there is one. */
export interface ChosenAgent extends AsyncDisposable {
  readonly agent: Agent;
  /** The model of programs, which reach it through the recording server. */
  readonly upstream: (UpstreamModel & { readonly name: string }) | null;
  readonly modelName: string | null;
}

const MODEL_RETRIES = 3;
const MODEL_TIMEOUT_MS = 10 * 60_000;

/** `runs` is where runs are kept. */
export async function chooseAgent(
  options: AgentOptions & { readonly runs?: string },
  command: readonly string[],
  terminal: Terminal,
  onBusy: (pauseMs: number) => void,
): Promise<ChosenAgent> {
  const none = { upstream: null, modelName: null, [Symbol.asyncDispose]: async () => {} };
  const upstream =
    options.model === undefined ? null : { ...endpointOf(options, terminal), name: options.model, wantsTokens: options.tokens === true };
  checkInside(options);
  switch (options.agent) {
    case "oracle":
      return { agent: oracleAgent(), ...none };
    case "noop":
      return { agent: noopAgent(), ...none };
    case "random":
      return { agent: randomAgent(), ...none };
    case "scripted":
      return { agent: scriptedBy(actionsOf(options, terminal)), ...none };
    case "replay":
      if (options.replayFrom === undefined) throw missing("the agent 'replay' needs a run", "--replay-from RUN");
      return { agent: await replayOf(getRun(options.replayFrom, { runs: options.runs ?? "runs" }, terminal), options.replayFrom), ...none };
    case "command":
      if (command.length === 0) throw missing("the agent 'command' needs a command", "-- python agent.py");
      return {
        agent: recordingTokens(programOf(options, command, terminal), options),
        ...none,
        upstream,
        modelName: options.model ?? null,
      };
    case "module":
      if (options.agentFile === undefined) throw missing("the agent 'module' needs a file", "--agent-file agent.ts");
      return { agent: recordingTokens(await moduleAgent(options.agentFile), options), ...none, upstream, modelName: options.model ?? null };
    case "openai":
    case "terminal":
    case "anthropic": {
      if (upstream === null) throw missing(`the agent '${options.agent}' needs a model`, "--model NAME");
      const http = new ModelHttp({ retries: MODEL_RETRIES, timeoutMs: MODEL_TIMEOUT_MS, onBusy });
      const model: Model = {
        api: apiOf(options),
        baseUrl: upstream.baseUrl,
        apiKey: upstream.apiKey,
        name: upstream.name,
        sampling: samplingOf(options.sampling ?? {}),
        streams: options.stream === true,
        wantsTokens: options.tokens === true,
      };
      const { contextTokens } = options;
      const agent =
        options.agent === "terminal"
          ? terminalAgent(model, http, contextTokens === undefined ? {} : { contextTokens })
          : modelAgent(model, http);
      return { agent, upstream: null, modelName: upstream.name, [Symbol.asyncDispose]: () => http.close() };
    }
  }
}

function actionsOf({ actions, agentFile }: AgentOptions, { cwd }: Terminal): ScriptedActions {
  if (actions !== undefined) return actions;
  if (agentFile === undefined) throw missing("the agent 'scripted' needs a file with its actions", "--agent-file actions.json");
  return readActions(agentFile, cwd);
}

function programOf({ inside, install, installFiles, agentUser }: AgentOptions, command: readonly string[], { cwd }: Terminal): Agent {
  if (inside !== true) return commandAgent({ command, folder: cwd });
  return insideAgent({
    command,
    ...(install !== undefined && { install: resolve(cwd, install) }),
    ...(installFiles !== undefined && { files: resolve(cwd, installFiles) }),
    ...(agentUser !== undefined && { user: agentUser }),
  });
}

function checkInside({ agent, inside, install, installFiles, agentUser }: AgentOptions): void {
  const needInside = [install, installFiles, agentUser].some((value) => value !== undefined);
  if (inside === true && agent !== "command") throw missing("--inside is for the agent 'command'", "--agent command -- PROGRAM");
  if (needInside && inside !== true) throw missing("--install, --install-files and --agent-user need --inside", "--inside");
}

/** A run with tokens is another run than one without. */
function recordingTokens(agent: Agent, { tokens }: AgentOptions): Agent {
  if (tokens !== true) return agent;
  const named = { name: agent.name, settings: { ...agent.settings, wantsTokens: true } };
  if (!("run" in agent)) return { ...named, begin: (start) => agent.begin(start) };
  return { ...named, prepare: async (place) => agent.prepare?.(place), run: (start) => agent.run(start) };
}

/** The options that made the agent of a run. */
export function agentOfRun({ agent: { name, settings }, model }: RunSettings): { agent: AgentOptions; program: readonly string[] } {
  const { path, command, api, baseUrl, sampling = {}, streams, wantsTokens, contextTokens } = settings;
  const withModel = { ...(model !== null && { model }), tokens: wantsTokens === true };
  if (typeof path === "string") return { agent: { agent: "module", agentFile: path, ...withModel }, program: [] };
  if (Array.isArray(command))
    return { agent: { agent: "command", ...withModel, ...insideOf(settings.inside) }, program: command.map(String) };
  const actions = scriptedActions.safeParse(settings.actions);
  if (name === "scripted" && actions.success) return { agent: { agent: "scripted", actions: actions.data }, program: [] };
  if (name === "replay" && typeof settings.run === "string") return { agent: { agent: "replay", replayFrom: settings.run }, program: [] };
  const kind = agentKinds.find((one) => one === name);
  if (kind === undefined) {
    throw new Failure(`the agent '${name}' cannot be made again from its settings`, {
      exit: "usage",
      hint: "Play the run again with: aenv rollout",
    });
  }
  const pairs = Object.entries(sampling as object).map(([key, value]) => [key, JSON.stringify(value)]);
  return {
    agent: {
      agent: kind,
      ...withModel,
      ...(typeof baseUrl === "string" && { baseUrl }),
      ...(isApi(api) && { api }),
      ...(typeof contextTokens === "number" && { contextTokens }),
      stream: streams === true,
      sampling: Object.fromEntries(pairs),
    },
    program: [],
  };
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

function isApi(api: unknown): api is ModelApi {
  return apis.some((one) => one === api);
}

function apiOf({ agent, api = "chat" }: AgentOptions): ModelApi {
  return agent === "anthropic" ? "messages" : api;
}

function endpointOf(options: AgentOptions, { env }: Terminal): UpstreamModel {
  const { baseUrl, modelKey } = options;
  const isAnthropic = apiOf(options) === "messages";
  const usual = isAnthropic ? "https://api.anthropic.com/v1" : "https://api.openai.com/v1";
  const url = baseUrl ?? (isAnthropic ? env.ANTHROPIC_BASE_URL : env.OPENAI_BASE_URL) ?? usual;
  if (!URL.canParse(url))
    throw new Failure(`'${url}' is not the address of a model's endpoint`, { exit: "usage", hint: `Write it as: --base-url ${usual}` });
  return { baseUrl: url, apiKey: modelKey ?? (isAnthropic ? env.ANTHROPIC_API_KEY : env.OPENAI_API_KEY) ?? "none" };
}

/** Values are JSON where they can be read as JSON, else text. */
function samplingOf(pairs: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(pairs).map(([key, text]) => [key, parse(text)]));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function missing(problem: string, example: string): Failure {
  return new Failure(problem, { exit: "usage", hint: `Add: ${example}` });
}
