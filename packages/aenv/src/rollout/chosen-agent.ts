import { resolve } from "node:path";
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
  randomAgent,
  terminalAgent,
  type UpstreamModel,
} from "@aenv/rollout";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { AgentOptions, ModelApi } from "./agent-options.ts";
import { readActions, replayOf, type ScriptedActions, scriptedBy } from "./recorded-agents.ts";
import { getRun } from "./run-option.ts";

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
  onBusy?: (pauseMs: number) => void,
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
      const http = new ModelHttp({ retries: MODEL_RETRIES, timeoutMs: MODEL_TIMEOUT_MS, ...(onBusy && { onBusy }) });
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
