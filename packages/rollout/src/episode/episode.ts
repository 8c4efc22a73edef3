import {
  type ChatMessage,
  type ChatToolCall,
  type EpisodeAbilities,
  type EpisodeTask,
  episodeStatus,
  isObject,
  isPlatformError,
  type Outcome,
  type RecordingRequest,
  type ResetResult,
  STATUS_META,
  type Step,
  type StopReason,
  type Task,
  type ToolDescriptor,
  textOf,
} from "@aenv/contract";
import { parseArguments } from "@aenv/sdk/adapters";
import { isCut, noTokenCount } from "../models/tokens.ts";
import type { AgentMessage, Player } from "../player/agent.ts";
import { asWritten } from "../player/arguments.ts";
import { ModelError } from "../player/failure.ts";
import type { EpisodeInstance } from "../player/instance.ts";
import { LimitReached, type Limits, Meter } from "../player/limits.ts";
import type { RecordedToolCall } from "../recorder/mcp.ts";
import type { RecordedExchange } from "../recorder/model.ts";
import { elapsedMs } from "./elapsed.ts";
import { EpisodeRecord } from "./record.ts";
import { TimeLimit } from "./time-limit.ts";
import { failedResult, messageOfResult, type StepResult, toStepResult } from "./tool-message.ts";

/** Tests and builds of a task take long. The deadline of the episode limits a call, so a call needs no timer of its own. */
const NO_TIMEOUT = Number.POSITIVE_INFINITY;

export interface EpisodeOptions {
  readonly instance: EpisodeInstance;
  /** The id of a listed task, or a task of the caller's own. */
  readonly task: EpisodeTask | null;
  readonly seed: number;
  /** The role that this episode is a part of, in an environment with roles. */
  readonly role?: string;
  readonly limits: Limits;
  readonly signal: AbortSignal;
  /** Whether the digest of the state is recorded after every step, for replays. */
  readonly recordsDigests: boolean;
  /** The answers of the environment's models, for an episode that is played again. */
  readonly recording?: RecordingRequest | undefined;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** Milliseconds spent in each part of an episode. */
export interface EpisodeTiming {
  reset_ms: number;
  model_ms: number;
  tools_ms: number;
  score_ms: number;
}

/** What is known of an episode at its beginning. A fork and the parts of roles are given it. */
export interface Beginning {
  readonly task: Task | null;
  readonly tools: readonly ToolDescriptor[];
  readonly abilities: EpisodeAbilities;
  readonly wasReset: boolean;
}

interface JoinedBeginning extends Omit<Beginning, "tools"> {
  readonly observation: unknown;
  readonly startedAt: number;
  /** Tools that the agent is not offered. */
  readonly hides: readonly string[];
}

/**
 * One episode on one instance: it is reset, played turn by turn, and scored. `fork` makes episodes that go on from the same point.
 *
 * @example
 * const episode = await Episode.begin({ instance, task: "refund-1", seed: 7, ... });
 * const reason = await episode.play(agent.begin(episode.start));
 * const { reward } = await episode.score();
 */
export class Episode {
  readonly record: EpisodeRecord;
  readonly timing: EpisodeTiming;
  readonly tools: readonly ToolDescriptor[];
  readonly task: Task | null;
  readonly #options: EpisodeOptions;
  readonly #beginning: Beginning;
  readonly meter: Meter;
  readonly #startedAt: number;
  #signal: AbortSignal;
  /** Runs while the episode is played, if the agent has a time limit. */
  #timeLimit: TimeLimit | null = null;
  #isDone = false;

  private constructor(
    options: EpisodeOptions,
    beginning: Beginning,
    record: EpisodeRecord,
    timing: EpisodeTiming,
    meter: Meter,
    startedAt: number,
  ) {
    this.#options = options;
    this.#beginning = beginning;
    this.record = record;
    this.timing = timing;
    this.tools = beginning.tools;
    this.task = beginning.task;
    this.meter = meter;
    this.#signal = options.signal;
    this.#startedAt = startedAt;
  }

  /** Resets the instance to the task and asks it for the messages that an agent begins with. */
  static async begin(options: EpisodeOptions): Promise<Episode> {
    const { instance, signal, limits, now } = options;
    const from = now();
    const abilities = await instance.episode.abilities({ signal });
    const reset = await resetInstance(options, abilities);
    const { task: found, observation } = reset ?? { task: null, observation: null };
    const tools = await listTools(options);
    const messages = abilities.prompt ? (await instance.episode.prompt({ signal })).messages : defaultPrompt(observation);
    const timing = { reset_ms: elapsedMs(from, now()), model_ms: 0, tools_ms: 0, score_ms: 0 };
    const beginning = { task: found, tools, abilities, wasReset: reset !== null };
    return new Episode(options, beginning, new EpisodeRecord(messages), timing, new Meter(limits), from);
  }

  /** The part of a role in an episode that has begun: its own tools, and the messages that its agent begins with. */
  static async join(
    options: EpisodeOptions & { readonly role: string },
    { observation, startedAt, hides, ...known }: JoinedBeginning,
  ): Promise<Episode> {
    const { instance, signal, limits, role } = options;
    const { prompt } = known.abilities;
    const tools = (await listTools(options)).filter(({ name }) => !hides.includes(name));
    const messages = prompt ? (await instance.episode.prompt({ signal, role })).messages : defaultPrompt(observation);
    const timing = { reset_ms: 0, model_ms: 0, tools_ms: 0, score_ms: 0 };
    return new Episode(options, { ...known, tools }, new EpisodeRecord(messages), timing, new Meter(limits), startedAt);
  }

  /**
   * An episode that was begun before, by another process perhaps: the instance is not reset. What happened so far is not in its
   * record.
   */
  static async resume(
    options: EpisodeOptions,
    { task, isDone }: { readonly task: Task | null; readonly isDone: boolean },
  ): Promise<Episode> {
    const { instance, signal, limits, now } = options;
    const abilities = await instance.episode.abilities({ signal });
    const tools = await listTools(options);
    const timing = { reset_ms: 0, model_ms: 0, tools_ms: 0, score_ms: 0 };
    const episode = new Episode(options, { task, tools, abilities, wasReset: true }, new EpisodeRecord(), timing, new Meter(limits), now());
    episode.#isDone = isDone;
    return episode;
  }

  /** Which of the optional parts of an episode the environment defines. */
  get abilities(): EpisodeAbilities {
    return this.#beginning.abilities;
  }

  /** False if the environment cannot be reset: its instance is for one episode. */
  get wasReset(): boolean {
    return this.#beginning.wasReset;
  }

  /** Where the episode is played. The caller of `fork` releases that of a fork. */
  get instance(): EpisodeInstance {
    return this.#options.instance;
  }

  /** The digest of the environment's reward functions; null if it does not say. */
  get rewardDigest(): string | null {
    return this.#beginning.abilities.rewardDigest ?? null;
  }

  /** Aborts when the episode takes too long, or is cancelled. */
  get signal(): AbortSignal {
    return this.#options.signal;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /** Another role has ended it: calls are not made any more. */
  end(): void {
    this.#isDone = true;
  }

  /** Plays until the environment says that the episode is done, the player stops, or a limit is reached. */
  play(player: Player): Promise<StopReason> {
    return this.within<StopReason>(null, async () => {
      for (;;) {
        const reason = await this.#turn(player);
        if (reason !== null) return reason;
      }
    });
  }

  /** Plays until so many tool calls have been made, with the whole turn of the last one; null if the episode goes on from there. */
  playTo(player: Player, steps: number): Promise<StopReason | null> {
    return this.within(null, async () => {
      while (this.record.steps.length < steps) {
        const reason = await this.#turn(player);
        if (reason !== null) return reason;
      }
      return null;
    });
  }

  /** Runs what plays the episode within the agent's time limit, and until `stop`. */
  async within<T>(
    stop: AbortSignal | null,
    work: (signal: AbortSignal) => Promise<T>,
    seconds = this.#options.limits.seconds,
  ): Promise<T | StopReason> {
    using limit = seconds === undefined ? null : new TimeLimit(seconds * 1_000, this.#options.now);
    this.#timeLimit = limit;
    const ends = [...(limit === null ? [] : [limit.signal]), ...(stop === null ? [] : [stop])];
    // Most episodes have neither, and a joined signal costs as much as a tool call.
    if (ends.length > 0) this.#signal = AbortSignal.any([this.#options.signal, ...ends]);
    try {
      return await work(this.#signal);
    } catch (error) {
      if (error instanceof LimitReached) return error.stopReason;
      // Its own time is up: what it has done so far is scored. Anything else that aborts is not the agent's doing, nor is a failed model.
      if (limit?.signal.aborted === true && !this.#options.signal.aborted && !(error instanceof ModelError)) return "time_limit";
      throw error;
    } finally {
      this.#timeLimit = null;
      this.#signal = this.#options.signal;
    }
  }

  /** One message of the player and what follows from it; null if the episode goes on. */
  async #turn(player: Player): Promise<StopReason | null> {
    const written = await this.ask(player);
    return typeof written === "string" ? written : this.take(written.message);
  }

  /** The player's next message, which is then in the record; or why there is none. */
  async ask(player: Player): Promise<AgentMessage | StopReason> {
    const { now } = this.#options;
    this.meter.beginTurn();
    const from = now();
    const onDelay = (ms: number) => this.#timeLimit?.extend(ms);
    const written = await player.next(this.record.messages, { signal: this.#signal, maxTokens: this.meter.tokensLeft, onDelay });
    if (written === null) return "done";
    if (written.seen !== undefined) this.record.show(written.seen, null);
    this.#note(written, from);
    if (!this.isCounted(written)) throw noTokenCount();
    return isCut(written) ? "max_tokens" : written;
  }

  /** False if there is a limit of tokens and the model's endpoint does not say how many a message has. */
  isCounted({ turn }: AgentMessage): boolean {
    return this.meter.tokensLeft === undefined || turn === undefined || turn.completion_tokens !== null;
  }

  /** Takes a message of the agent that is in the record already: runs its tool calls, or asks the environment for a reply. */
  async take(message: ChatMessage): Promise<StopReason | null> {
    const calls = message.tool_calls ?? [];
    if (calls.length === 0) return textOf(message).trim() === "" ? "empty_reply" : this.#reply(message);
    const at = this.record.messages.length - 1;
    if (this.isHeard(message)) await this.hear(message);
    for (const call of calls) await this.#call(call, at);
    return this.#isDone ? "done" : null;
  }

  /** Whether the environment wants to know what the agent writes here beside tool calls. */
  isHeard(message: ChatMessage): boolean {
    return this.#beginning.abilities.hear && (message.tool_calls ?? []).length > 0 && textOf(message).trim() !== "";
  }

  hear(message: ChatMessage): Promise<void> {
    return this.#options.instance.episode.hear(message, { signal: this.#signal, ...this.#as });
  }

  /** Records a message of a program that plays the episode by itself. */
  addMessage(message: ChatMessage): void {
    this.record.messages.push(message);
  }

  /** Records a tool call that a program has made. One without a result has failed on its way. */
  addStep({ name, arguments: args, result }: RecordedToolCall): void {
    const step = result === null ? failedResult("no result came") : toStepResult({ ...result, isError: result.isError ?? false });
    const { steps } = this.record;
    const status = episodeStatus.safeParse(isObject(result?._meta) ? result._meta[STATUS_META] : undefined);
    if (status.success && status.data.done) this.#isDone = true;
    steps.push({
      index: steps.length,
      message: null,
      call: { id: `call_${steps.length}`, name, arguments: args },
      result: recordOf(step),
      started_ms: elapsedMs(this.#startedAt, this.#options.now()),
      duration_ms: 0,
      reward: null,
      state_digest: null,
    });
  }

  /** Records a program's exchange with the model: what the model was shown, and what it wrote. */
  addExchange({ seen, continues, written }: RecordedExchange): void {
    if (seen !== null) this.record.show(seen, continues);
    this.#note(written, this.#options.now());
  }

  /** The environment's own score of the episode. */
  async score(args: Readonly<Record<string, unknown>> = {}): Promise<Outcome> {
    const { instance, signal, now } = this.#options;
    const from = now();
    const { reward, components, weights } = await instance.score(args, { signal, timeoutMs: NO_TIMEOUT });
    this.timing.score_ms = elapsedMs(from, now());
    return { kind: "scored", reward, components, ...(weights && { weights }) };
  }

  /**
   * Episodes that go on from here, each on an instance of its own, until `signal` aborts. The caller releases the instances.
   *
   * @example
   * const [left, right] = await episode.fork(2);
   */
  async fork(count: number, signal: AbortSignal = this.#options.signal): Promise<Episode[]> {
    const { instance } = this.#options;
    const copies = await instance.fork(count, { signal });
    return copies.map((copy) => {
      const meter = new Meter(this.meter.limits, this.meter.used);
      const options = { ...this.#options, instance: copy, signal };
      const fork = new Episode(options, this.#beginning, this.record.copy(), { ...this.timing }, meter, this.#startedAt);
      fork.#isDone = this.#isDone;
      return fork;
    });
  }

  /** What names the role in requests and records. */
  get #as(): { readonly role?: string } {
    const { role } = this.#options;
    return role === undefined ? {} : { role };
  }

  #note({ message, turn }: AgentMessage, from: number): void {
    const duration = elapsedMs(from, this.#options.now());
    this.record.messages.push(message);
    if (turn === undefined) return;
    this.timing.model_ms += duration;
    // What is not known matters only with a limit, and ends the episode then.
    this.meter.addTokens(turn.completion_tokens ?? 0);
    const { turns, messages } = this.record;
    const { role } = this.#options;
    turns.push({
      ...turn,
      node_id: role === undefined ? `n${turns.length}` : `${role}-n${turns.length}`,
      ...this.#as,
      message: messages.length - 1,
      started_ms: elapsedMs(this.#startedAt, from),
      duration_ms: duration,
    });
  }

  async #reply(message: ChatMessage): Promise<StopReason | null> {
    if (!this.#beginning.abilities.reply) return "done";
    const { instance } = this.#options;
    const signal = this.#signal;
    const { messages, status } = await instance.episode.reply(message, { signal, timeoutMs: NO_TIMEOUT, ...this.#as });
    this.record.messages.push(...messages);
    this.#isDone = status.done;
    return status.done ? "done" : null;
  }

  /** Runs a tool call and records it as a step. What the model got wrong is its own to read; only failures of the platform throw. */
  async #call(call: ChatToolCall, message: number): Promise<void> {
    const { now, instance, recordsDigests } = this.#options;
    const signal = this.#signal;
    const args = parseArguments(call.function.arguments);
    const from = now();
    const result = this.#isDone ? failedResult("not run: the episode is over") : await this.#run(call, args);
    const duration = elapsedMs(from, now());
    this.timing.tools_ms += duration;
    this.record.messages.push(messageOfResult(call.id, result));
    if (this.#isDone && result.isSkipped) return;
    if (result.status?.done === true) this.#isDone = true;
    // Recorded before the rest is asked for: an episode that fails there has made this step.
    const step: Step = {
      index: this.record.steps.length,
      ...this.#as,
      message,
      call: { id: call.id, name: call.function.name, arguments: args.ok ? args.value : {} },
      result: recordOf(result),
      started_ms: elapsedMs(this.#startedAt, from),
      duration_ms: duration,
      reward: null,
      state_digest: null,
    };
    this.record.steps.push(step);
    if (this.#beginning.abilities.stepRewards) step.reward = (await instance.episode.stepReward({ signal, ...this.#as })).reward;
    if (recordsDigests) step.state_digest = await instance.episode.digest({ signal });
  }

  async #run({ function: { name, arguments: text } }: ChatToolCall, args: ReturnType<typeof parseArguments>): Promise<StepResult> {
    this.meter.beginToolCall();
    if (!args.ok) return failedResult(args.message);
    if (!this.tools.some((tool) => tool.name === name)) {
      return failedResult(`there is no tool '${name}'; there are: ${this.tools.map((tool) => tool.name).join(", ")}`);
    }
    const limits = { signal: this.#signal, timeoutMs: NO_TIMEOUT, ...this.#as };
    return toStepResult(await this.#options.instance.callTool(name, asWritten(text, args.value), limits));
  }
}

/** Null if the instance cannot be reset. */
export async function resetInstance(
  { instance, task, seed, signal, recording }: EpisodeOptions,
  abilities: EpisodeAbilities,
): Promise<ResetResult | null> {
  // The agent sees observations, never rewards.
  const only = abilities.observation ? { observationsOnly: true } : {};
  return instance
    .reset({ task, seed, ...only, ...(recording !== undefined && { recording }) }, { signal, timeoutMs: NO_TIMEOUT })
    .catch((error: unknown) => {
      // The original's servers have no reset and no tasks. A fresh instance of them is at the beginning of its only episode.
      if (task === null && isPlatformError(error, "instance.unsupported")) return null;
      throw error;
    });
}

/** The tools with their plain names. */
async function listTools({ instance, signal, role }: EpisodeOptions): Promise<ToolDescriptor[]> {
  return (await instance.listTools({ signal, ...(role !== undefined && { role }) })).map((tool) => ({
    ...tool,
    name: tool.name.slice(tool.name.indexOf("/") + 1),
  }));
}

function recordOf({ content, isError, structured }: StepResult): Step["result"] {
  return { content: [...content], is_error: isError, ...(structured !== undefined && { structured_content: structured }) };
}

function defaultPrompt(observation: unknown): ChatMessage[] {
  if (observation === null || observation === undefined) return [];
  return [{ role: "user", content: typeof observation === "string" ? observation : JSON.stringify(observation) }];
}
