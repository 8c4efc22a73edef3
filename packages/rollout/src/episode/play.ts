import {
  type EpisodeChild,
  type EpisodeStage,
  isTruncated,
  messageOf,
  type Outcome,
  type Provenance,
  type RecordedExchange,
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
import { assignPlayers, describePlayers, inEveryRole, type Players, requireRoles } from "../player/players.ts";
import type { RecordingServer } from "../recorder/server.ts";
import { type Artifacts, noArtifacts, takeArtifacts } from "./artifacts.ts";
import { type Capacity, isNoCapacity } from "./capacity.ts";
import { elapsedMs } from "./elapsed.ts";
import { Episode, type EpisodeOptions } from "./episode.ts";
import { Match, rolesOf } from "./match.ts";
import { type ProgramOptions, playProgram } from "./program.ts";
import { captureOf, usageOf } from "./usage.ts";

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
  /** Plays every role of an environment with roles for which there are no players. */
  readonly agent: Agent;
  /** Who plays the roles of an environment with roles; `agent` is not used then. */
  readonly players?: Players;
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

/** An episode of one agent, or of several. */
export type Played = Episode | Match;

/** What is done in each stage of an episode: on an instance of its own, or in a fork of another episode. */
export interface Stages {
  start(signal: AbortSignal): Promise<Lease>;
  reset(lease: Lease, signal: AbortSignal): Promise<Played>;
  play(episode: Played, lease: Lease): Promise<StopReason>;
  score(episode: Played): Promise<Outcome>;
}

/** The stages of an episode that is played from its task on, on an instance of its own. */
export function usualStages(spec: EpisodeSpec, options: PlayOptions): Stages {
  const { limits, recordsDigests, now, rewardArgs } = options;
  return {
    start: (signal) => options.acquire(spec, signal),
    reset: ({ instance, task = spec.task }, signal) =>
      beginEpisode({ instance, task: task.inline ?? task.id, seed: spec.seed, limits, signal, recordsDigests, now }, options.players),
    play: (episode, lease) => (episode instanceof Match ? playMatch(episode, spec, options) : playTurns(episode, spec, options, lease)),
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

/** An episode of one agent, or of several if the environment has roles. Throws if the players do not fit the roles. */
export async function beginEpisode(episodeOptions: EpisodeOptions, players?: Players): Promise<Played> {
  const { instance, signal } = episodeOptions;
  const roles = Object.keys(rolesOf(await instance.episode.abilities({ signal })));
  if (players !== undefined) requireRoles(players, roles);
  return roles.length === 0 ? Episode.begin(episodeOptions) : Match.begin(episodeOptions);
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
  let episode: Played | null = null;
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
  const { recording, error: recordingError } = episode === null ? noRecording : await takeRecording(episode, signal);
  const artifacts = episode !== null && options.onArtifacts ? await takeArtifacts(episode, signal) : noArtifacts;
  const children = episode === null ? undefined : await childrenOf(episode, signal);
  await lease?.release(outcome.kind === "scored" && episode?.wasReset === true);
  playing?.[Symbol.dispose]();
  await options.onArtifacts?.(spec, artifacts.files);
  const tools = episode?.tools ?? [];
  const parent = lease?.parent ?? null;
  const recorded = recordedOf(episode, outcome, options);
  // What came before a fork was paid for once: the first of the group counts it.
  const ownTurns = recorded.turns.slice(spec.group?.index === 0 ? 0 : (parent?.turns ?? 0));
  const report = episode instanceof Episode ? episode.record.programReport : null;
  const timing = episode instanceof Match ? episode.sumTiming() : episode?.timing;
  const player = options.players === undefined ? agent : describePlayers(options.players);
  return {
    format: TRAJECTORY_FORMAT,
    id: spec.id,
    run: spec.run,
    attempt: spec.attempt,
    task: namedTask(lease?.task ?? spec.task, episode),
    group: spec.group,
    parent: episode === null ? null : parent,
    seed: spec.seed,
    ...recorded,
    ...(recording !== null && { recording: [...recording] }),
    ...(options.rewardArgs && { reward_args: options.rewardArgs }),
    outcome,
    stop_reason: reason,
    truncated: isTruncated(reason),
    capture: captureOf(recorded.turns),
    usage: usageOf(ownTurns),
    cost: recorded.roles === undefined ? options.costOf(ownTurns) : sumOfKnown(Object.values(recorded.roles).map(({ cost }) => cost)),
    timing: {
      started_at: started,
      total_ms: elapsedMs(from, now()),
      start_ms: startMs,
      ...(timing ?? { reset_ms: 0, model_ms: 0, tools_ms: 0, score_ms: 0 }),
    },
    provenance: {
      environment: "",
      environment_digest: null,
      engine: null,
      isolation: null,
      server_version: null,
      ...options.provenance,
      ...lease?.provenance,
      agent: player.name,
      agent_digest: agentDigestOf(player, options.limits),
      agent_settings: player.settings,
      tools_digest: tools.length === 0 ? null : digestOf(tools),
      reward_digest: episode?.rewardDigest ?? null,
      ...(children !== undefined && { children }),
    },
    metadata: {
      ...spec.metadata,
      ...(artifacts.error !== null && { artifacts_error: artifacts.error }),
      ...(report && { agent_program: report }),
      ...(recordingError !== null && { recording_error: recordingError }),
    },
  };
}

/** The children of the episode, if its environment has any. A score that exists stays, whatever they answer. */
async function childrenOf(
  { abilities, instance }: Pick<Played, "abilities" | "instance">,
  signal: AbortSignal,
): Promise<EpisodeChild[] | undefined> {
  if (abilities.children !== true) return undefined;
  return instance.episode.children({ signal }).then(
    (children) => [...children],
    () => undefined,
  );
}

const noRecording = { recording: null, error: null };

/** The calls of models by the environment's code, those of the reward included. Never fails: an episode without its recording is one all the same. */
async function takeRecording(
  { abilities, instance }: Played,
  signal: AbortSignal,
): Promise<{ readonly recording: readonly RecordedExchange[] | null; readonly error: string | null }> {
  if (abilities.recording !== true || signal.aborted) return noRecording;
  try {
    return { recording: await instance.episode.recording({ signal }), error: null };
  } catch (error) {
    return { recording: null, error: messageOf(error) };
  }
}

function isWorthWaiting(error: unknown, stage: EpisodeStage, { capacity, cancel, deadlineMs }: PlayOptions): boolean {
  if (capacity === undefined || cancel.aborted || (stage !== "start" && stage !== "reset")) return false;
  return isNoCapacity(error) && !capacity.isIdleFor(deadlineMs);
}

/** What happened in an episode, as a trajectory holds it. */
function recordedOf(
  episode: Played | null,
  outcome: Outcome,
  { costOf }: PlayOptions,
): Pick<Trajectory, "messages" | "tools" | "roles" | "offered_tools" | "conversations" | "steps" | "turns"> {
  if (episode === null) return { messages: [], tools: [], steps: [], turns: [] };
  const tools = [...episode.tools];
  if (episode instanceof Match) {
    return { messages: [], tools, roles: episode.roles(outcome, costOf), steps: episode.steps, turns: episode.turns };
  }
  const { messages, offeredTools, conversations, steps, turns } = episode.record;
  return {
    messages,
    tools,
    ...(offeredTools && { offered_tools: [...offeredTools] }),
    ...(conversations.length > 0 && { conversations }),
    steps,
    turns,
  };
}

function sumOfKnown(costs: readonly (number | null)[]): number | null {
  const known = costs.flatMap((cost) => (cost === null ? [] : [cost]));
  return known.length === 0 ? null : known.reduce((sum, cost) => sum + cost, 0);
}

/** The id of a task that is not listed is the environment's choice. */
function namedTask(task: Trajectory["task"], episode: Played | null): Trajectory["task"] {
  return task.inline === undefined ? task : { ...task, id: episode?.task?.id ?? null };
}

async function playMatch(match: Match, spec: EpisodeSpec, { agent, players, provenance }: PlayOptions): Promise<StopReason> {
  const roles = match.roleNames;
  await match.assign(assignPlayers(players ?? inEveryRole(agent, provenance.model, roles), roles, spec.seed));
  return match.play();
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
