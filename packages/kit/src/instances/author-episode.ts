import {
  type ChatMessage,
  type EpisodePrompt,
  type EpisodeReply,
  type EpisodeStatus,
  messageOf,
  type OracleAction,
  PlatformError,
  type Reward,
  textOf,
} from "@aenv/contract";
import { sayToAgent } from "../agent/tools.ts";
import type { CompiledEnvironment } from "../compile/environment.ts";
import type { EpisodeContext, ToolContext } from "../definition/definition.ts";
import { jsonOrThrow } from "../json/to-json.ts";
import type { CallHooks } from "./call.ts";
import { digestFrom, oracleFrom, promptFrom, promptFromObservation, replyFrom, statusFrom, stepRewardFrom } from "./episode-parts.ts";
import type { EpisodePath } from "./episode-path.ts";
import { observe } from "./observation.ts";
import type { RunningCalls } from "./running-calls.ts";
import type { Snapshot } from "./snapshot.ts";

export interface AuthorEpisodeOptions {
  readonly environment: CompiledEnvironment;
  readonly calls: RunningCalls;
  readonly path: () => EpisodePath | null;
  /** The current state, and the episode that it belongs to. */
  readonly state: () => EpisodeContext & { readonly state: unknown };
  readonly context: (hooks: CallHooks) => ToolContext<unknown>;
  readonly takeSnapshot: (signal: AbortSignal) => Promise<Pick<Snapshot, "data" | "agent">>;
  readonly logFailure: (what: string, error: unknown, controller: AbortController) => void;
}

/** What the author's functions say about the episode of an instance. Each is optional; what is missing has a default. */
export class AuthorEpisode {
  readonly #options: AuthorEpisodeOptions;

  constructor(options: AuthorEpisodeOptions) {
    this.#options = options;
  }

  /** The messages that an agent begins with. */
  prompt(hooks: CallHooks): Promise<EpisodePrompt> {
    const { environment, state, context } = this.#options;
    const { prompt } = environment.definition;
    if (prompt !== undefined) return this.#run("prompt", hooks, async () => promptFrom(await prompt(state())));
    return this.#run("observe", hooks, async () => {
      const { sandbox, sandboxes, model, signal } = context(hooks);
      const { state: current, ...episode } = state();
      const observation = await observe(environment, current, { ...episode, sandbox, sandboxes, model, signal });
      return promptFromObservation(jsonOrThrow("episode.failed", observation ?? null, "what observe returned"));
    });
  }

  /** What the other side says to the agent's words, which end the episode where the environment has no reply. */
  async reply(message: ChatMessage, hooks: CallHooks): Promise<EpisodeReply> {
    const { environment, context, path } = this.#options;
    const { reply, agent } = environment.definition;
    path()?.say(textOf(message));
    if (reply === undefined && agent !== undefined) return this.#turn(textOf(message), hooks);
    if (reply === undefined) return { messages: [], status: { done: true, reason: "the agent has answered" } };
    return this.#run("reply", hooks, async () => replyFrom(await reply(textOf(message), { ...context(hooks), message })));
  }

  /** One turn of the environment's agent. The episode goes on, unless `status` says that it is over. */
  #turn(text: string, hooks: CallHooks): Promise<EpisodeReply> {
    const { environment, context, state } = this.#options;
    const { status } = environment.definition;
    return this.#run("reply", hooks, async () => {
      const content = await sayToAgent(text, context(hooks));
      const { messages } = replyFrom({ content });
      return { messages, status: statusFrom(status === undefined ? false : await status(state())) };
    });
  }

  /** Takes what the agent writes beside tool calls; nothing happens where the environment does not want it. */
  hear(message: ChatMessage, hooks: CallHooks): Promise<void> {
    const { environment, context } = this.#options;
    const { hear } = environment.definition;
    if (hear === undefined) return Promise.resolve();
    return this.#run("hear", hooks, async () => void (await hear(textOf(message), { ...context(hooks), message })));
  }

  /** Whether the episode is over; never, as far as an environment without `status` says. */
  status(hooks: CallHooks): Promise<EpisodeStatus> {
    const { environment, state } = this.#options;
    const { status } = environment.definition;
    return this.#run("status", hooks, async () => statusFrom(status === undefined ? false : await status(state())));
  }

  async stepReward(hooks: CallHooks): Promise<Reward> {
    const { environment, state } = this.#options;
    const { stepReward } = environment.definition;
    if (stepReward === undefined) {
      throw new PlatformError(
        "reward.missing",
        `environment '${environment.name}' defines no reward per step; add 'stepReward' to its definition`,
      );
    }
    return this.#run("stepReward", hooks, async () => stepRewardFrom(await stepReward(state())));
  }

  /** The actions that solve the task; null if the environment does not know them. */
  oracle(hooks: CallHooks): Promise<{ readonly actions: readonly OracleAction[] | null }> {
    const { environment, state } = this.#options;
    const { oracle } = environment.definition;
    return this.#run("oracle", hooks, async () => oracleFrom(oracle === undefined ? null : await oracle(state())));
  }

  /** The digest of what the environment says stands for the state, else of its snapshot. */
  async digest(hooks: CallHooks): Promise<{ readonly digest: string }> {
    const { environment, state, takeSnapshot } = this.#options;
    const { digest } = environment.definition;
    if (digest !== undefined) return this.#run("digest", hooks, async () => digestFrom(await digest(state().state)));
    const snapshot = await takeSnapshot(hooks.controller.signal);
    // The conversations with an agent are its state. Without an agent they are only records of calls.
    const conversations = environment.definition.agent === undefined ? undefined : snapshot.agent;
    return digestFrom(conversations === undefined ? snapshot.data : [snapshot.data, conversations.data]);
  }

  async #run<T>(part: string, { controller }: CallHooks, work: () => Promise<T>): Promise<T> {
    const { environment, calls, logFailure } = this.#options;
    const what = `'${part}' of environment '${environment.name}'`;
    try {
      return (await calls.run(work, controller, undefined, what)) as T;
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      logFailure(what, error, controller);
      throw new PlatformError("episode.failed", `${what} failed: ${messageOf(error)}`, { cause: error });
    }
  }
}
