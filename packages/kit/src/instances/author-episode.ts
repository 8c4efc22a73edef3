import {
  type ChatMessage,
  type EpisodePrompt,
  type EpisodeReply,
  type EpisodeStatus,
  type Json,
  messageOf,
  type OracleAction,
  PlatformError,
  type Reward,
  textOf,
} from "@aenv/contract";
import { sayToAgent } from "../agent/tools.ts";
import type { CompiledEnvironment } from "../compile/environment.ts";
import type { StateContext, ToolContext } from "../definition/definition.ts";
import { jsonOrThrow } from "../json/to-json.ts";
import type { CallHooks } from "./call.ts";
import { digestFrom, oracleFrom, promptFrom, promptFromObservation, replyFrom, statusFrom, stepRewardFrom } from "./episode-parts.ts";
import type { EpisodePath } from "./episode-path.ts";
import { observe } from "./observation.ts";
import type { RolePlay } from "./role-play.ts";
import type { RunningCalls } from "./running-calls.ts";
import type { Snapshot } from "./snapshot.ts";

export interface AuthorEpisodeOptions {
  readonly environment: CompiledEnvironment;
  readonly calls: RunningCalls;
  readonly path: () => EpisodePath | null;
  /** The current state, and the episode that it belongs to. */
  readonly state: (role: string | null) => StateContext<unknown>;
  readonly context: (hooks: CallHooks) => ToolContext<unknown>;
  /** Null without roles. */
  readonly play: RolePlay | null;
  readonly takeSnapshot: (signal: AbortSignal) => Promise<Pick<Snapshot, "data" | "agent">>;
  /** The digests of the states of children; null if there are none. */
  readonly childDigests: (signal: AbortSignal) => Promise<Readonly<Record<string, string>> | null>;
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
    const { environment, state } = this.#options;
    const { prompt } = environment.definition;
    const role = hooks.role ?? null;
    if (prompt !== undefined) return this.#run("prompt", hooks, async () => promptFrom(await prompt(state(role))));
    return this.#run("observe", hooks, async () => promptFromObservation(await this.#observe(hooks)));
  }

  /** What a role sees now; null where the environment does not say. */
  view(role: string, hooks: CallHooks): Promise<Json> {
    if (this.#options.environment.definition.observe === undefined) return Promise.resolve(null);
    return this.#run("observe", hooks, () => this.#observe({ ...hooks, role }));
  }

  /** What the other side says to the agent's words, which end the episode where the environment has no reply. */
  async reply(message: ChatMessage, hooks: CallHooks): Promise<EpisodeReply> {
    const { environment, context, play, path } = this.#options;
    const { reply, agent } = environment.definition;
    const answer = async (): Promise<EpisodeReply> => {
      path()?.say(textOf(message), hooks.role ?? null);
      if (reply === undefined && agent !== undefined) return this.#turn(textOf(message), hooks);
      if (reply === undefined) return { messages: [], status: { done: true, reason: "the agent has answered" } };
      return this.#run("reply", hooks, async () => replyFrom(await reply(textOf(message), { ...context(hooks), message })));
    };
    return play === null || hooks.role == null ? answer() : play.reply(hooks.role, hooks, answer);
  }

  /** One turn of the environment's agent. The episode goes on, unless `status` says that it is over. */
  #turn(text: string, hooks: CallHooks): Promise<EpisodeReply> {
    const { environment, context, state } = this.#options;
    const { status } = environment.definition;
    return this.#run("reply", hooks, async () => {
      const content = await sayToAgent(text, context(hooks));
      const { messages } = replyFrom({ content });
      return { messages, status: statusFrom(status === undefined ? false : await status(state(null))) };
    });
  }

  /** Takes what the agent writes beside tool calls; nothing happens where the environment does not want it. */
  async hear(message: ChatMessage, hooks: CallHooks): Promise<void> {
    const { environment, context, play } = this.#options;
    const { hear } = environment.definition;
    if (hear === undefined) return;
    await this.#run("hear", hooks, async () => void (await hear(textOf(message), { ...context(hooks), message })));
    play?.changed();
  }

  /** Whether the episode is over; never, as far as an environment without `status` says. With roles, also whose turn it is. */
  status(hooks: CallHooks): Promise<EpisodeStatus> {
    const { environment, state, play } = this.#options;
    const { status } = environment.definition;
    if (play !== null) return this.#run("status", hooks, () => play.status());
    return this.#run("status", hooks, async () => statusFrom(status === undefined ? false : await status(state(null))));
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
    return this.#run("stepReward", hooks, async () => stepRewardFrom(await stepReward(state(hooks.role ?? null))));
  }

  /** The actions that solve the task; null if the environment does not know them. */
  oracle(hooks: CallHooks): Promise<{ readonly actions: readonly OracleAction[] | null }> {
    const { environment, state } = this.#options;
    const { oracle } = environment.definition;
    return this.#run("oracle", hooks, async () => oracleFrom(oracle === undefined ? null : await oracle(state(hooks.role ?? null))));
  }

  /** The digest of what the environment says stands for the state, else of its snapshot, with what waits beside the state and the digests of children. */
  async digest(hooks: CallHooks): Promise<{ readonly digest: string }> {
    const { environment, state, takeSnapshot, play, childDigests } = this.#options;
    const { digest } = environment.definition;
    const children = await childDigests(hooks.controller.signal);
    const withTurns = (value: unknown) => {
      const turns = play?.facts() ?? null;
      return turns === null && children === null
        ? value
        : { state: value, ...(turns !== null && { turns }), ...(children !== null && { children }) };
    };
    if (digest !== undefined) return this.#run("digest", hooks, async () => digestFrom(withTurns(await digest(state(null).state))));
    const snapshot = await takeSnapshot(hooks.controller.signal);
    // The conversations with an agent are its state. Without an agent they are only records of calls.
    const conversations = environment.definition.agent === undefined ? undefined : snapshot.agent;
    return digestFrom(withTurns(conversations === undefined ? snapshot.data : [snapshot.data, conversations.data]));
  }

  async #observe(hooks: CallHooks): Promise<Json> {
    const { environment, state, context } = this.#options;
    const role = hooks.role ?? null;
    const { sandbox, sandboxes, model, signal } = context(hooks);
    const { state: current, ...episode } = state(role);
    const observation = await observe(environment, current, { ...episode, sandbox, sandboxes, model, signal });
    return jsonOrThrow("episode.failed", observation ?? null, "what observe returned");
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
