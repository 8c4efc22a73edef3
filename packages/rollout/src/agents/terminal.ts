import { type ChatMessage, type ToolDescriptor, textOf } from "@aenv/contract";
import { digestOf } from "../journal/digest.ts";
import type { ModelHttp } from "../models/http.ts";
import type { AgentMessage, AgentStart, Player, TurnAgent, TurnOptions } from "../player/agent.ts";
import { AgentError } from "../player/failure.ts";
import { LimitReached } from "../player/limits.ts";
import { type Model, modelAgent } from "./model.ts";

/*
 * The reference agent for terminals. Each turn, the model gets the prompt below, the task and the conversation so far, and calls the
 * environment's own tools. Its first message without a tool call ends the episode. When the conversation comes near the budget, old
 * outputs of tools are shortened. The episode records each conversation as the model saw it.
 */

const PROMPT = `You are an engineer who solves a task in a Linux sandbox. Nobody else is there: do not ask questions, decide for yourself.

{tools}

How to work:
- First look at what is there: the files, the tools that are installed, the tests if there are any.
- Make a short plan. Then work in small steps, and read the output of every step before the next one.
- Commands cannot be answered while they run: use flags such as -y, and start servers in the background.
- Limit long outputs with head, tail or grep. Old outputs are shortened later, so note what you will still need.
- If something fails, find out why before you try again. If the same thing failed twice, try another way.
- Do what the task asks, and nothing that it does not ask for. Names, paths and formats must be exactly those of the task.
- Before you end, check the result as the task describes it: run the program or its tests, look at the files that you wrote.

When the task is done and checked, write a short summary without a tool call. That ends the work: you cannot continue afterwards.`;

export interface TerminalAgentOptions {
  /** The largest conversation that the model is sent, in tokens; 100,000 by default. */
  readonly contextTokens?: number | undefined;
}

const CONTEXT_TOKENS = 100_000;
/** A cautious estimate: code and English text have about four. */
const CHARACTERS_PER_TOKEN = 3;

/** A model that solves tasks with the terminal and the file tools of an environment. */
export function terminalAgent(model: Model, http: ModelHttp, options: TerminalAgentOptions = {}): TurnAgent {
  const { contextTokens = CONTEXT_TOKENS } = options;
  const asked = modelAgent(model, http);
  return {
    name: "terminal",
    settings: { ...asked.settings, contextTokens, prompt: digestOf(PROMPT) },
    begin: async (start) =>
      new TerminalPlayer(await asked.begin(start), start, contextTokens * CHARACTERS_PER_TOKEN, promptFor(start.tools)),
  };
}

class TerminalPlayer implements Player {
  readonly #model: Player;
  readonly #start: AgentStart;
  readonly #budget: number;
  readonly #prompt: string;
  #hasBegun = false;

  constructor(model: Player, start: AgentStart, budget: number, prompt: string, hasBegun = false) {
    this.#model = model;
    this.#start = start;
    this.#budget = budget;
    this.#prompt = prompt;
    this.#hasBegun = hasBegun;
  }

  async next(messages: readonly ChatMessage[], options: TurnOptions): Promise<AgentMessage | null> {
    const begun = this.#hasBegun ? messages : withPrompt(messages, this.#prompt, this.#start.task.instruction);
    this.#hasBegun = true;
    const sent = shortened(begun, this.#budget);
    try {
      return await this.#ask(sent, options);
    } catch (error) {
      if (!(error instanceof LimitReached) || error.stopReason !== "context_length") throw error;
      // The model can read less than the budget. Once more with half of what was sent, if old outputs make that possible.
      const half = sizeOf(sent) / 2;
      const shorter = shortened(sent, half);
      if (sizeOf(shorter) > half) throw error;
      return this.#ask(shorter, options);
    }
  }

  async #ask(sent: readonly ChatMessage[], options: TurnOptions): Promise<AgentMessage | null> {
    const written = await this.#model.next(sent, options);
    return written === null ? null : { ...written, seen: { messages: [...sent], tools: [...this.#start.tools] } };
  }

  copy(seed: number): Player {
    return new TerminalPlayer(this.#model.copy(seed), this.#start, this.#budget, this.#prompt, this.#hasBegun);
  }
}

/** The names under which environments have a terminal and file tools. */
const USES: readonly (readonly [pattern: RegExp, use: string])[] = [
  [/^(?:bash|sh|shell|terminal|execute_command|run_command|exec|execute_bash|execute)$/, "runs commands"],
  [/^(?:read_file|view_file|cat)$/, "reads a file"],
  [/^(?:write_file|create_file)$/, "writes a file"],
  [/^(?:edit_file|str_replace|replace_in_file|apply_patch)$/, "changes a part of a file"],
  [/^(?:list_files|list_directory|ls)$/, "lists a folder"],
];

function promptFor(tools: readonly ToolDescriptor[]): string {
  const named = USES.map(([pattern, use]) => [tools.find(({ name }) => pattern.test(name))?.name, use] as const);
  const [terminal] = named[0] as (typeof named)[number];
  if (terminal === undefined) {
    const names = tools.map(({ name }) => name).join(", ") || "none";
    throw new AgentError(
      `the agent 'terminal' needs a tool that runs commands, such as bash or execute_command; the environment has: ${names}`,
    );
  }
  const lines = named.flatMap(([name, use]) => (name === undefined ? [] : [`- ${name} ${use}.`]));
  return PROMPT.replace("{tools}", () => `Your tools for this:\n${lines.join("\n")}`);
}

/** The agent's prompt, followed by the instructions of the environment, if it has some, and the task. */
function withPrompt(messages: readonly ChatMessage[], prompt: string, instruction: string | null): readonly ChatMessage[] {
  const own = messages.filter(({ role }) => role === "system" || role === "developer").map(textOf);
  const rest = messages.filter(({ role }) => role !== "system" && role !== "developer");
  const task: ChatMessage[] = rest.length === 0 && instruction !== null ? [{ role: "user", content: instruction }] : rest;
  return [{ role: "system", content: [prompt, ...own].join("\n\n") }, ...task];
}

/** An old output keeps this many characters of its beginning and of its end. */
const KEPT = 150;

/**
 * The conversation, with outputs of tools shortened, the oldest first, if it is longer than the budget. It is then cut to half of the budget, so that this
 * happens rarely: the model's endpoint can reuse a conversation as long as its beginning stays the same. The number of messages stays.
 */
export function shortened(messages: readonly ChatMessage[], budget: number): readonly ChatMessage[] {
  let size = sizeOf(messages);
  if (size <= budget) return messages;
  const result = [...messages];
  const outputs = result.flatMap(({ role }, at) => (role === "tool" ? [at] : []));
  const cut = (places: readonly number[], aim: number) => {
    for (const at of places) {
      if (size <= aim) return;
      const before = result[at] as ChatMessage;
      const after = { ...before, content: shortOutput(textOf(before)) };
      size += sizeOf([after]) - sizeOf([before]);
      result[at] = after;
    }
  };
  cut(outputs.slice(0, -1), budget / 2);
  // The last one is what the model waits for: shortened only if nothing else helps.
  cut(outputs.slice(-1), budget);
  if (size > budget) throw new LimitReached("context_length", `the conversation has ${size} characters, more than the budget of ${budget}`);
  return result;
}

function shortOutput(text: string): string {
  const missing = text.length - 2 * KEPT;
  if (missing < KEPT) return text;
  return `${text.slice(0, KEPT)}\n[... ${missing} characters of this old output were removed ...]\n${text.slice(-KEPT)}`;
}

function sizeOf(messages: readonly ChatMessage[]): number {
  return messages.reduce((sum, message) => sum + JSON.stringify(message).length, 0);
}
