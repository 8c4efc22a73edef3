import {
  type EpisodeStage,
  isTruncated,
  type Outcome,
  type Provenance,
  type StopReason,
  TimedSignal,
  TRAJECTORY_FORMAT,
  type Trajectory,
  type Turn,
} from "@aenv/contract";
import { digestOf } from "../journal/digest.ts";
import { type Agent, isProgram } from "../player/agent.ts";
import { AgentError, DeadlineError, unscoredBy } from "../player/failure.ts";
import type { EpisodeInstance } from "../player/instance.ts";
import type { Limits } from "../player/limits.ts";
import type { RecordingServer } from "../recorder/server.ts";
import { type Artifacts, noArtifacts, takeArtifacts } from "./artifacts.ts";
import { type Capacity, isNoCapacity } from "./capacity.ts";
import { elapsedMs } from "./elapsed.ts";
import { Episode } from "./episode.ts";
import { type ProgramOptions, playProgram } from "./program.ts";

/** An episode to be played. */
export interface EpisodeSpec {
  readonly id: string;
  readonly run: string | null;
  readonly attempt: number;
  readonly task: Trajectory["task"];
  readonly group: Trajectory["group"];
  readonly seed: number;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A running instance for one episode. */
export interface Lease {
  readonly instance: EpisodeInstance;
  /** What the instance is, for the trajectory. */
  readonly provenance: Pick<Provenance, "environment" | "environment_digest" | "engine" | "isolation" | "server_version">;
  /** The task, if the spec does not name it by its id. */
  readonly task?: Trajectory["task"];
  /** What was played before, if the instance is a fork. */
  readonly parent?: Trajectory["parent"];
  /** Gives it back; one that is not to be used again is ended. Never throws. */
  release(isReusable: boolean): Promise<void>;
}

export interface PlayOptions {
  readonly agent: Agent;
  /** Records the model calls of an agent that is a program; null if it is none. */
  readonly recorder: RecordingServer | null;
  readonly model: ProgramOptions["model"];
  readonly limits: Limits;
  /** How long the whole episode may take, with start and score. A longer one is unscored. */
  readonly deadlineMs: number;
  readonly recordsDigests: boolean;
  /** Arguments of the reward, which the trainer chooses. */
  readonly rewardArgs?: Readonly<Record<string, unknown>> | undefined;
  readonly acquire: (spec: EpisodeSpec, signal: AbortSignal) => Promise<Lease>;
  /** What only the caller knows of where an episode comes from. Without an instance, the environment is the one that is named here. */
  readonly provenance: Pick<Provenance, "model" | "client_version" | "config_digest"> &
    Partial<Pick<Provenance, "environment" | "environment_digest">>;
  readonly costOf: (turns: readonly Turn[]) => number | null;
  /** Where episodes wait for which the server has no capacity; without it they fail. */
  readonly capacity?: Capacity;
  /** Keeps the files of an attempt, of which there may be none. They are asked for only if this is given. */
  readonly onArtifacts?: (spec: EpisodeSpec, files: Artifacts) => Promise<void>;
  readonly cancel: AbortSignal;
  readonly now: () => number;
  readonly date: () => Date;
}

/** What is done in each stage of an episode: on an instance of its own, or in a fork of another episode. */
export interface Stages {
  start(signal: AbortSignal): Promise<Lease>;
  reset(lease: Lease, signal: AbortSignal): Promise<Episode>;
  play(episode: Episode, lease: Lease): Promise<StopReason>;
  score(episode: Episode): Promise<Outcome>;
}

/** The stages of an episode that is played from its task on, on an instance of its own. */
export function usualStages(spec: EpisodeSpec, options: PlayOptions): Stages {
  const { limits, recordsDigests, now, rewardArgs } = options;
  return {
    start: (signal) => options.acquire(spec, signal),
    reset: ({ instance, task = spec.task }, signal) =>
      Episode.begin({ instance, task: task.inline ?? task.id, seed: spec.seed, limits, signal, recordsDigests, now }),
    play: (episode, lease) => playTurns(episode, spec, options, lease),
    score: (episode) => episode.score(rewardArgs),
  };
}

/** Plays one attempt of an episode from start to end. Never throws: what goes wrong is the episode's outcome. */
export async function playEpisode(spec: EpisodeSpec, options: PlayOptions, stages = usualStages(spec, options)): Promise<Trajectory> {
  for (;;) {
    const played = await playOnce(spec, options, stages);
    if (played !== null) return played;
    await options.capacity?.wait(options.cancel);
  }
}

/** The digest is made here only, so that those of a command and those of the service can be compared. */
export function agentDigestOf({ name, settings }: Pick<Agent, "name" | "settings">, limits: Limits): string {
  return digestOf({ name, settings, limits });
}

/** Null if the server has no capacity for the episode, which is then worth waiting for. */
async function playOnce(spec: EpisodeSpec, options: PlayOptions, stages: Stages): Promise<Trajectory | null> {
  const { agent, now } = options;
  const from = now();
  const started = options.date().toISOString();
  using deadline = new EpisodeDeadline(options.deadlineMs, options.cancel);
  const { signal } = deadline;
  let lease: Lease | null = null;
  let episode: Episode | null = null;
  let playing: Disposable | undefined;
  let stage: EpisodeStage = "start";
  let startMs = 0;
  let reason: StopReason = "error";
  let outcome: Outcome;
  try {
    lease = await stages.start(signal);
    startMs = elapsedMs(from, now());
    stage = "reset";
    episode = await stages.reset(lease, signal);
    stage = "play";
    playing = options.capacity?.begin();
    reason = await stages.play(episode, lease);
    stage = "score";
    outcome = await stages.score(episode);
  } catch (error) {
    if (isWorthWaiting(error, stage, options)) {
      await lease?.release(false);
      return null;
    }
    outcome = unscoredBy(deadline.isOver ? signal.reason : error, stage, options.cancel);
    reason = "error";
  }
  const artifacts = episode !== null && options.onArtifacts ? await takeArtifacts(episode, signal) : noArtifacts;
  await lease?.release(outcome.kind === "scored" && episode?.wasReset === true);
  playing?.[Symbol.dispose]();
  await options.onArtifacts?.(spec, artifacts.files);
  const record = episode?.record;
  const tools = episode?.tools ?? [];
  const parent = lease?.parent ?? null;
  // What came before a fork was paid for once: the first of the group counts it.
  const ownTurns = (record?.turns ?? []).slice(spec.group?.index === 0 ? 0 : (parent?.turns ?? 0));
  return {
    format: TRAJECTORY_FORMAT,
    id: spec.id,
    run: spec.run,
    attempt: spec.attempt,
    task: namedTask(lease?.task ?? spec.task, episode),
    group: spec.group,
    parent: record === undefined ? null : parent,
    seed: spec.seed,
    messages: record?.messages ?? [],
    tools: [...tools],
    ...(record?.offeredTools && { offered_tools: [...record.offeredTools] }),
    ...(record !== undefined && record.conversations.length > 0 && { conversations: record.conversations }),
    steps: record?.steps ?? [],
    turns: record?.turns ?? [],
    ...(options.rewardArgs && { reward_args: options.rewardArgs }),
    outcome,
    stop_reason: reason,
    truncated: isTruncated(reason),
    capture: captureOf(record?.turns ?? []),
    usage: usageOf(ownTurns),
    cost: options.costOf(ownTurns),
    timing: {
      started_at: started,
      total_ms: elapsedMs(from, now()),
      start_ms: startMs,
      ...(episode?.timing ?? { reset_ms: 0, model_ms: 0, tools_ms: 0, score_ms: 0 }),
    },
    provenance: {
      environment: "",
      environment_digest: null,
      engine: null,
      isolation: null,
      server_version: null,
      ...options.provenance,
      ...lease?.provenance,
      agent: agent.name,
      agent_digest: agentDigestOf(agent, options.limits),
      agent_settings: agent.settings,
      tools_digest: tools.length === 0 ? null : digestOf(tools),
      reward_digest: episode?.rewardDigest ?? null,
    },
    metadata: {
      ...spec.metadata,
      ...(artifacts.error !== null && { artifacts_error: artifacts.error }),
      ...(record?.programReport && { agent_program: record.programReport }),
    },
  };
}

function isWorthWaiting(error: unknown, stage: EpisodeStage, { capacity, cancel, deadlineMs }: PlayOptions): boolean {
  if (capacity === undefined || cancel.aborted || (stage !== "start" && stage !== "reset")) return false;
  return isNoCapacity(error) && !capacity.isIdleFor(deadlineMs);
}

/** The id of a task that is not listed is the environment's choice. */
function namedTask(task: Trajectory["task"], episode: Episode | null): Trajectory["task"] {
  return task.inline === undefined ? task : { ...task, id: episode?.task?.id ?? null };
}

async function playTurns(
  episode: Episode,
  spec: EpisodeSpec,
  options: PlayOptions,
  { instance, provenance: { engine } }: Lease,
): Promise<StopReason> {
  const { agent, recorder, model, cancel } = options;
  const task = { id: episode.task?.id ?? null, instruction: episode.task?.instruction ?? null };
  if (isProgram(agent)) {
    if (recorder === null) throw new AgentError(`the agent '${agent.name}' is a program, and no recording server was opened for it`);
    const { sandbox = null, runtime } = instance;
    const isIsolated = runtime?.isIsolated ?? null;
    const agentUrl = await instance.agentUrl({ signal: cancel });
    return playProgram(episode, agent, { recorder, agentUrl, model, task, seed: spec.seed, sandbox, engine, isIsolated });
  }
  const oracle = () => instance.episode.oracle({ signal: cancel });
  return episode.play(await agent.begin({ task, tools: episode.tools, seed: spec.seed, oracle }));
}

/** A signal that aborts when an episode takes too long or its caller cancels it. */
export class EpisodeDeadline extends TimedSignal {
  constructor(ms: number, cancel: AbortSignal) {
    super(ms, cancel, () => new DeadlineError(`the episode took longer than ${ms / 1_000} s`));
  }
}

function captureOf(turns: readonly Turn[]): Trajectory["capture"] {
  if (turns.length === 0) return "text";
  if (turns.every(({ prompt_token_ids, completion_token_ids, logprobs }) => prompt_token_ids && completion_token_ids && logprobs))
    return "tokens";
  return turns.every(({ logprobs }) => logprobs !== null) ? "logprobs" : "text";
}

function usageOf(turns: readonly Turn[]): Trajectory["usage"] {
  const sum = (value: (turn: Turn) => number | null | undefined) => turns.reduce((total, turn) => total + (value(turn) ?? 0), 0);
  const sumOfAll = (value: (turn: Turn) => number | null) => (turns.some((turn) => value(turn) === null) ? null : sum(value));
  const reasoning = sum((turn) => turn.reasoning_tokens);
  return {
    prompt_tokens: sumOfAll((turn) => turn.prompt_tokens),
    completion_tokens: sumOfAll((turn) => turn.completion_tokens),
    cached_tokens: sum((turn) => turn.cached_tokens),
    ...(reasoning > 0 && { reasoning_tokens: reasoning }),
  };
}
