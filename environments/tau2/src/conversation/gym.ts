import { isBlank, PyError, valueError } from "@aenv/benchmark";
import type { Domain } from "../core/domain.ts";
import { evaluate } from "../core/evaluate/evaluate.ts";
import type { Judge } from "../core/evaluate/nl-assertions.ts";
import type { RewardInfo, Unscored } from "../core/evaluate/reward.ts";
import { type Action, parseAction } from "../core/messages/action.ts";
import type { ParticipantMessage, ToolCall } from "../core/messages/messages.ts";
import type { Task } from "../core/tasks.ts";
import type { JsonSchema } from "../core/tools/parameters.ts";
import { schemaOf } from "../prompts/tool-schemas.ts";
import { STOP_TOKEN } from "./history.ts";
import { observationOf } from "./observation.ts";
import { Orchestrator, type Participant, type TerminationReason } from "./orchestrator.ts";

export interface GymOptions {
  readonly domain: Domain;
  readonly task: Task;
  readonly isSolo: boolean;
  /** Null in solo mode, and if no model plays the user. */
  readonly user: Participant | null;
  readonly judge: Judge | null;
  readonly maxSteps?: number;
  readonly showsAllMessages?: boolean;
}

export interface GymStep {
  readonly observation: string;
  /** 0 until the end; null if the episode cannot be scored, with the reason in `outcome`. */
  readonly reward: number | null;
  readonly terminated: boolean;
  readonly truncated: false;
  readonly outcome: RewardInfo | Unscored | null;
}

/** The tool that ends an episode; agents have it in addition to the domain's tools. */
export const DONE: JsonSchema = {
  type: "function",
  function: {
    name: "done",
    description: "Call this function when you are done with the task.",
    parameters: { properties: {}, title: "parameters", type: "object" },
  },
};

/** Words for the user, even if they look like a call. */
export interface Speech {
  readonly say: string;
}

/** A call, and what the agent wrote beside it. The user does not get these words, but they count as communicated. */
export interface SpokenCall {
  readonly call: ToolCall;
  readonly words: string;
}

/** What an agent does: a tool call, words, or a line of text, which may be words for the user or a call in `parseAction`'s notation. */
export type AgentAction = string | ToolCall | SpokenCall | Speech;

/** One episode from the agent's side: `reset`, then one `step` per action. */
export class Gym {
  readonly #options: GymOptions;
  #orchestrator: Orchestrator | null = null;
  #crash: Error | null = null;

  constructor(options: GymOptions) {
    this.#options = options;
  }

  get isDone(): boolean {
    return this.#crash !== null || (this.#orchestrator?.reason ?? null) !== null;
  }

  get reason(): TerminationReason | null {
    return this.#orchestrator?.reason ?? null;
  }

  /** The error that aborted the episode, such as an unreachable user model. */
  get crash(): Error | null {
    return this.#crash;
  }

  get orchestrator(): Orchestrator {
    if (this.#orchestrator === null) throw new Error("Orchestrator not initialized. Call reset() first.");
    return this.#orchestrator;
  }

  /** The tools of the agent, including `done`. */
  tools(): JsonSchema[] {
    const { domain, task, isSolo } = this.#options;
    const environment = domain.create({ isSolo });
    const users = isSolo && environment.userTools !== null ? environment.getUserTools(task.user_tools) : [];
    const ours = environment.getTools().map((tool) => schemaOf(domain, "assistant", tool));
    return [...ours, ...users.map((tool) => schemaOf(domain, "user", tool)), DONE];
  }

  /** Restarts the episode and returns the first observation: the user's answer to the greeting, or nothing if the episode has already ended. */
  async reset(signal?: AbortSignal): Promise<string> {
    const { domain, task, isSolo, user, maxSteps } = this.#options;
    const environment = domain.create({ isSolo });
    this.#crash = null;
    this.#orchestrator = new Orchestrator({ environment, task, user, isAgentStop, ...(maxSteps === undefined ? {} : { maxSteps }) });
    await this.#proceed(signal);
    return this.isDone ? "" : this.observation();
  }

  observation(): string {
    return this.#crash === null ? observationOf(this.orchestrator.agentMessages, this.#options.showsAllMessages ?? false) : "";
  }

  async step(action: AgentAction, signal?: AbortSignal): Promise<GymStep> {
    const problem = await this.play(action, signal);
    if (problem !== null) return { observation: problem, reward: 0, terminated: this.isDone, truncated: false, outcome: null };
    const outcome = await this.evaluate(signal);
    const reward = outcome === null ? 0 : outcome.reward;
    return { observation: this.observation(), reward, terminated: this.isDone, truncated: false, outcome };
  }

  /** Runs an action without scoring it. Returns null, or the observation of an action that was not run: empty after the end, else the error. */
  async play(action: AgentAction, signal?: AbortSignal): Promise<string | null> {
    const { orchestrator } = this;
    if (this.isDone) return "";
    let message: ParticipantMessage;
    try {
      message = messageOf(action);
    } catch (error) {
      if (error instanceof PyError) return `Invalid action with error: ${error.message}`;
      throw error;
    }
    await this.#proceed(signal, () => orchestrator.give(message));
    return null;
  }

  /** The outcome of a finished episode; null while it runs or if it crashed. */
  async evaluate(signal?: AbortSignal): Promise<RewardInfo | Unscored | null> {
    const { domain, task, isSolo, judge } = this.#options;
    const { reason } = this.orchestrator;
    if (this.#crash !== null || reason === null) return null;
    const trajectory = this.orchestrator.messages();
    return await evaluate({ domain, task, trajectory, terminationReason: reason, isSolo, judge, signal });
  }

  async #proceed(signal: AbortSignal | undefined, begin: () => void = () => {}): Promise<void> {
    try {
      begin();
      await this.orchestrator.runUntilAgent(signal);
      if (this.isDone) this.orchestrator.messages();
    } catch (error) {
      this.#crash = error instanceof Error ? error : new Error(String(error));
    }
  }
}

function messageOf(action: AgentAction): ParticipantMessage {
  const parsed = parsedAction(action);
  if ("text" in parsed) return { role: "assistant", content: parsed.text, tool_calls: null };
  if (parsed.call.name === "done") return { role: "assistant", content: STOP_TOKEN, tool_calls: null };
  const content = typeof action === "object" && "words" in action ? action.words : null;
  return { role: "assistant", content, tool_calls: [parsed.call] };
}

function parsedAction(action: AgentAction): Action {
  if (typeof action === "string") return parseAction(action);
  if ("words" in action) return { call: action.call };
  if (!("say" in action)) return { call: action };
  if (isBlank(action.say)) throw valueError("Action cannot be empty");
  return { text: action.say };
}

function isAgentStop({ content }: ParticipantMessage): boolean {
  return content?.includes(STOP_TOKEN) ?? false;
}
