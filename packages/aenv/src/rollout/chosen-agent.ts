import { resolve } from "node:path";
import {
  type Agent,
  type AgentChoice,
  type Model,
  type ModelApi,
  ModelHttp,
  type NamedAgent,
  namedAgents,
  type Players,
  type UpstreamModel,
} from "@aenv/rollout";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { readActions } from "./actions-file.ts";
import type { AgentOptions } from "./agent-options.ts";
import { getRun } from "./run-option.ts";

/** An agent, and the model behind it where there is one. */
export interface ChosenAgent extends AsyncDisposable {
  readonly agent: Agent;
  /** The players of the roles, if some were chosen; `agent` then describes them. */
  readonly players?: Players;
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
  checkInside(options);
  await using held = new AsyncDisposableStack();
  const newHttp = () => {
    const http = new ModelHttp({ retries: MODEL_RETRIES, timeoutMs: MODEL_TIMEOUT_MS, ...(onBusy && { onBusy }) });
    return held.adopt(http, () => http.close());
  };
  const { model, open }: NamedAgent = namedAgents[options.agent];
  const agent = await open(choiceOf(options, command, terminal, newHttp));
  const isRecorded = model === "recorded";
  const closing = held.move();
  return {
    agent: isRecorded ? recordingTokens(agent, options) : agent,
    upstream: isRecorded ? upstreamOf(options, terminal) : null,
    modelName: model === "none" ? null : (options.model ?? null),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** `newHttp` makes a client for models. */
function choiceOf(
  options: AgentOptions & { readonly runs?: string },
  command: readonly string[],
  terminal: Terminal,
  newHttp: () => ModelHttp,
): AgentChoice {
  const { agent, agentFile, actions, replayFrom, runs = "runs", contextTokens } = options;
  const { cwd } = terminal;
  return {
    contextTokens,
    model: (api = options.api ?? "chat") => {
      if (options.model === undefined) throw missing(`the agent '${agent}' needs a model`, "--model NAME");
      return [modelOf(options.model, api, options, terminal), newHttp()];
    },
    file: () => {
      if (agentFile === undefined) throw missing(`the agent '${agent}' needs a file`, "--agent-file agent.ts");
      return agentFile;
    },
    actions: () => {
      if (actions !== undefined) return actions;
      if (agentFile === undefined) throw missing(`the agent '${agent}' needs a file with its actions`, "--agent-file actions.json");
      return readActions(agentFile, cwd);
    },
    run: () => {
      if (replayFrom === undefined) throw missing(`the agent '${agent}' needs a run`, "--replay-from RUN");
      return [getRun(replayFrom, { runs }, terminal), replayFrom];
    },
    program: () => {
      if (command.length === 0) throw missing(`the agent '${agent}' needs a command`, "-- python agent.py");
      const { inside: isInside = false, install, installFiles, agentUser } = options;
      return {
        command,
        folder: cwd,
        isInside,
        ...(install !== undefined && { install: resolve(cwd, install) }),
        ...(installFiles !== undefined && { files: resolve(cwd, installFiles) }),
        ...(agentUser !== undefined && { user: agentUser }),
      };
    },
  };
}

function modelOf(name: string, api: ModelApi, options: AgentOptions, terminal: Terminal): Model {
  const { sampling = {}, stream: streams = false, tokens: wantsTokens = false } = options;
  return { api, name, sampling: samplingOf(sampling), streams, wantsTokens, ...endpointOf(api, options, terminal) };
}

function upstreamOf(options: AgentOptions, terminal: Terminal): ChosenAgent["upstream"] {
  const { model: name, api = "chat", tokens: wantsTokens = false } = options;
  return name === undefined ? null : { name, wantsTokens, ...endpointOf(api, options, terminal) };
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

function endpointOf(api: ModelApi, { baseUrl, modelKey }: AgentOptions, { env }: Terminal): Pick<Model, "baseUrl" | "apiKey"> {
  const isAnthropic = api === "messages";
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
