import { randomUUID } from "node:crypto";
import { isPlatformError, PlatformError, type Scored, type SessionStep, type ToolDescriptor } from "@aenv/contract";
import type { Episode } from "@aenv/rollout";
import type { Caller, EnvironmentVersion } from "@aenv/server/trainer-services";
import type { Sessions } from "../sessions/sessions.ts";
import type { Tasks } from "../sessions/tasks.ts";
import { type Action, type ResetData, SAY, SUBMIT } from "./messages.ts";
import { failedTool, failureOf, type Result, resultOf, rewardsOf, toolList, toolResult, valueResult } from "./results.ts";
import type { Playing } from "./row.ts";
import type { SharedState } from "./shared-state.ts";
import { chooseTask } from "./task-choice.ts";

export interface OpenEnvSessionOptions {
  readonly sessions: Sessions;
  readonly tasks: Tasks;
  readonly version: EnvironmentVersion;
  readonly caller: Caller;
  readonly shared: SharedState;
}

interface Tools {
  /** The session of the trainer API whose tools they are. */
  readonly session: string;
  readonly own: ReadonlySet<string>;
  /** The environment's own, and those of the platform. */
  readonly all: readonly ToolDescriptor[];
}

/** Trainers optimise for minutes between two episodes, and keep their sessions. */
const IDLE_SECONDS = 3_600;

/**
 * One client's session: any number of episodes, one after the other, each on an instance of its own that ends with it. The reward of
 * an episode is computed once, when it ends; without one there is an error, never a 0.
 */
export class OpenEnvSession {
  readonly id: string;
  readonly ref: string;
  /** Who used it last. */
  caller: Caller;
  readonly #options: OpenEnvSessionOptions;
  #playing: Playing | null = null;
  #episodes = 0;
  #toolset: Tools | null = null;
  /** Requests of one session run one after the other, from whichever connection they come. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #closing = new AbortController();

  constructor(options: OpenEnvSessionOptions) {
    this.#options = options;
    this.id = options.shared.id;
    this.caller = options.caller;
    this.ref = `${options.version.name}@${options.version.version}`;
  }

  get isShared(): boolean {
    return this.#options.shared.isStored;
  }

  /** Lets every server go on with the session. */
  share(): Promise<void> {
    return this.#inTurn(async () => {
      const { shared } = this.#options;
      if (!shared.isStored) await shared.store({ episodes: this.#episodes, playing: this.#playing });
    });
  }

  reset(data: ResetData): Promise<Result> {
    return this.#inTurn(() => this.#reset(data));
  }

  step(action: Action): Promise<Result> {
    return this.#inTurn(async () => {
      if (action.type === "list_tools") return resultOf({ tools: toolList(await this.#tools()) });
      return this.#call(this.#playing ?? (await this.#begin()), action);
    });
  }

  listTools(): Promise<readonly ToolDescriptor[]> {
    return this.#inTurn(() => this.#tools());
  }

  /** The state, without anything that an agent must not see. */
  async state(): Promise<Readonly<Record<string, unknown>>> {
    const { playing } = (await this.#options.shared.read()) ?? { playing: this.#playing };
    if (playing === null) return { episode_id: null, step_count: 0, env: this.ref };
    const { episodeId, stepCount, task, outcome, maxSteps } = playing;
    return {
      episode_id: episodeId,
      step_count: stepCount,
      env: this.ref,
      task_id: task?.id ?? null,
      split: task?.split ?? null,
      index: task?.index ?? null,
      done: outcome !== null,
      reward: outcome?.reward ?? null,
      max_steps: maxSteps,
    };
  }

  /** Whether it has no episode, at any server. */
  async isUnused(): Promise<boolean> {
    const { playing } = (await this.#options.shared.read().catch(() => null)) ?? { playing: this.#playing };
    return playing === null;
  }

  /** Ends the instance, also in the middle of a call. */
  async close(): Promise<void> {
    this.leave();
    await this.#end();
    // A reset may have been about to finish, here or at another server.
    await this.#last;
    const latest = await this.#options.shared.read().catch(() => null);
    if (latest !== null) this.#playing = latest.playing;
    await this.#end();
    await this.#options.shared.remove();
  }

  /** Stops using it here. A shared session goes on at other servers. */
  leave(): void {
    this.#closing.abort(new PlatformError("request.cancelled", "the session was closed"));
  }

  /** Runs one request after those before it, with the session's current state, which other servers may have changed. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(async () => {
      this.#closing.signal.throwIfAborted();
      const before = await this.#options.shared.load();
      if (before !== null) {
        this.#playing = before.playing;
        this.#episodes = before.episodes;
      }
      const done = await settle(work);
      // What a request has changed before it failed counts too.
      const isSaved = before === null || (await this.#options.shared.save({ episodes: this.#episodes, playing: this.#playing }));
      if (!done.ok) throw done.error;
      if (isSaved) return done.value;
      // The other server's episode is the session's; one that was begun here has no name any more.
      if (this.#episodes !== before.episodes) await this.#end();
      throw new PlatformError(
        "request.conflict",
        "another server has changed the session while this request ran; send the requests of a session one after the other",
      );
    });
    this.#last = turn.catch(() => {});
    return turn;
  }

  async #reset(data: ResetData): Promise<Result> {
    const { sessions, tasks, caller } = this.#options;
    await this.#end();
    const list = await tasks.list(this.ref, caller, this.#closing.signal);
    const task = chooseTask(list, data, this.#episodes);
    const start = await sessions.begin(
      { environment: this.ref, task, seed: data.seed ?? null, ttl_seconds: IDLE_SECONDS },
      caller,
      this.#closing.signal,
    );
    if (start.roles !== undefined) {
      await sessions.end(start.session, caller).catch(() => {});
      const roles = Object.keys(start.roles).join(", ");
      throw new PlatformError(
        "instance.unsupported",
        `${this.ref} has the roles ${roles}, and this protocol is for one agent; use POST /sessions`,
      );
    }
    this.#episodes++;
    const tools = this.#keepTools(start.session, start);
    this.#playing = {
      episodeId: data.episode_id ?? randomUUID(),
      task: start.task,
      session: start.session,
      maxSteps: data.max_steps ?? null,
      ...(data.reward_args != null && { rewardArguments: data.reward_args }),
      stepCount: 0,
      outcome: null,
      isTruncated: false,
      loss: null,
    };
    const prompt = start.observation;
    const taskId = start.task?.id ?? null;
    return resultOf(
      { prompt, messages: start.messages, task_id: taskId, available_tools: tools.all.map(({ name }) => name) },
      { metadata: { prompt, task_id: taskId, truncated: false } },
    );
  }

  /** Begins an episode for a client that has not reset. */
  async #begin(): Promise<Playing> {
    await this.#reset({});
    return this.#playing as Playing;
  }

  /** Before the first reset and after the last episode: the tools that the environment had when it was published. */
  async #tools(): Promise<readonly ToolDescriptor[]> {
    const published = this.#options.version.metadata;
    const playing = this.#playing ?? (published === null ? await this.#begin() : null);
    if (playing !== null && (playing.outcome === null || this.#toolset?.session === playing.session))
      return (await this.#toolsOf(playing)).all;
    const tools = (published?.tools ?? []).map((tool) => ({ ...tool, name: tool.name.slice(tool.name.indexOf("/") + 1) }));
    return [...tools, ...addedTools(new Set(tools.map(({ name }) => name)), false)];
  }

  /** An episode that another server has begun is asked for its tools. */
  async #toolsOf(playing: Playing): Promise<Tools> {
    if (this.#toolset?.session === playing.session) return this.#toolset;
    try {
      return this.#keepTools(playing.session, await this.#options.sessions.describe(playing.session, this.caller));
    } catch (error) {
      throw lossOf(playing, error);
    }
  }

  #keepTools(session: string, { tools, abilities }: Pick<Episode, "tools" | "abilities">): Tools {
    const own = new Set(tools.map(({ name }) => name));
    this.#toolset = { session, own, all: [...tools, ...addedTools(own, abilities.reply)] };
    return this.#toolset;
  }

  async #call(playing: Playing, { name, arguments: args }: Extract<Action, { type: "call_tool" }>): Promise<Result> {
    if (playing.loss !== null) throw new PlatformError("sandbox.lost", `instance lost: ${playing.loss}; reset to begin a new episode`);
    if (playing.outcome !== null)
      return this.#result(playing, failedTool(name, { type: "execution_error", message: "episode is done" }), null);
    const tools = await this.#toolsOf(playing);
    if (!tools.all.some((tool) => tool.name === name)) {
      const known = tools.all.map((tool) => tool.name).join(", ");
      playing.stepCount++;
      return this.#finished(
        playing,
        failedTool(name, { type: "tool_not_found", message: `Unknown tool: ${name}; there are: ${known}` }),
        null,
      );
    }
    playing.stepCount++;
    if (name === SUBMIT && !tools.own.has(SUBMIT)) {
      const { reward } = await this.#score(playing, typeof args.answer === "string" ? args.answer : undefined);
      return this.#result(playing, valueResult(name, { reward, done: true }), null);
    }
    const isSaying = name === SAY && !tools.own.has(SAY);
    if (isSaying && typeof args.text !== "string")
      return this.#finished(playing, failedTool(name, { type: "invalid_args", message: "text: must be a string" }), null);
    const step = await this.#step(playing, isSaying ? { text: args.text as string } : { tool: { name, arguments: { ...args } } });
    if (step === null)
      return this.#finished(playing, failedTool(name, { type: "timeout", message: `tool '${name}' did not answer in time` }), null);
    const observation = step.is_error
      ? failedTool(name, failureOf(step.content))
      : isSaying
        ? valueResult(name, step.observation)
        : toolResult(name, step);
    return this.#finished(playing, observation, step);
  }

  /** Scores the episode if the step was its last one. */
  async #finished(playing: Playing, observation: Readonly<Record<string, unknown>>, step: SessionStep | null): Promise<Result> {
    playing.isTruncated = step?.done !== true && playing.maxSteps !== null && playing.stepCount >= playing.maxSteps;
    if (step?.done === true || playing.isTruncated) await this.#score(playing, undefined);
    return this.#result(playing, observation, step);
  }

  #result({ outcome, isTruncated }: Playing, observation: Readonly<Record<string, unknown>>, step: SessionStep | null): Result {
    const stepReward = step?.reward ?? null;
    const metadata = {
      ...(stepReward !== null && { step_reward: stepReward }),
      ...(outcome !== null && { rewards: rewardsOf(outcome), truncated: isTruncated }),
    };
    return resultOf(observation, { reward: outcome?.reward ?? null, done: outcome !== null, metadata });
  }

  /** Null if the tool did not answer in time: it may have run, and the episode goes on. */
  async #step(playing: Playing, action: Parameters<Sessions["step"]>[1]): Promise<SessionStep | null> {
    try {
      return await this.#options.sessions.step(playing.session, action, this.caller);
    } catch (error) {
      if (isPlatformError(error, "tool.timeout")) return null;
      throw lossOf(playing, error);
    }
  }

  /** The score of the episode; its instance ends with it. */
  async #score(playing: Playing, answer: string | undefined): Promise<Scored> {
    const { sessions } = this.#options;
    // `submit` is a tool of the agent, which could raise its own score if its arguments reached the reward: the trainer's do.
    const { rewardArguments } = playing;
    const asked = { ...(answer !== undefined && { text: answer }), ...(rewardArguments && { arguments: { ...rewardArguments } }) };
    try {
      playing.outcome = (await sessions.score(playing.session, asked, this.caller)).outcome as Scored;
    } catch (error) {
      const { code, message } = lossOf(playing, error);
      throw new PlatformError(code, `the episode is unscored: ${message}`, { cause: error });
    }
    await sessions.end(playing.session, this.caller).catch(() => {});
    return playing.outcome;
  }

  async #end(): Promise<void> {
    const playing = this.#playing;
    this.#playing = null;
    // What cannot be ended now ends by its ttl.
    if (playing !== null && playing.outcome === null) await this.#options.sessions.end(playing.session, this.caller).catch(() => {});
  }
}

type Settled<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

function settle<T>(work: () => Promise<T>): Promise<Settled<T>> {
  return work().then(
    (value) => ({ ok: true, value }),
    (error: unknown) => ({ ok: false, error }),
  );
}

/** The error as the client reads it. An episode whose instance is lost cannot go on. */
function lossOf(playing: Playing, error: unknown): PlatformError {
  if (isPlatformError(error, "sandbox.lost", "session.not_found", "network.failed", "tool.failed")) {
    playing.loss = error.message;
    return new PlatformError("sandbox.lost", `instance lost: ${error.message}`, { cause: error });
  }
  return isPlatformError(error) ? error : new PlatformError("internal", "an internal error of the server", { cause: error });
}

/** Tools of the platform: one that ends the episode, and one to speak with environments that answer. The environment's own come first. */
function addedTools(ownTools: ReadonlySet<string>, canReply: boolean): ToolDescriptor[] {
  const text = (description: string) => ({ type: "string", description });
  const added: ToolDescriptor[] = [
    {
      name: SUBMIT,
      description: "Ends the task, with a final answer if the task asks for one.",
      inputSchema: { type: "object", properties: { answer: text("The final answer") } },
    },
  ];
  if (canReply) {
    added.push({
      name: SAY,
      description: "Says something to the other side of the conversation and returns its reply.",
      inputSchema: { type: "object", properties: { text: text("What to say") }, required: ["text"] },
    });
  }
  return added.filter(({ name }) => !ownTools.has(name));
}
