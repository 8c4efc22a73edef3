import type { RecordingRequest, Step, Trajectory } from "@aenv/contract";
import { isOfProgram, replayAgent } from "../agents/replay.ts";
import type { Episode } from "../episode/episode.ts";
import { Match } from "../episode/match.ts";
import { beginEpisode, type Played } from "../episode/play.ts";
import type { EpisodeInstance } from "../player/instance.ts";
import type { Limits } from "../player/limits.ts";
import { type Difference, differences } from "./difference.ts";

/** Where a replay first went another way. */
export type Divergence =
  | { readonly at: "prompt" | "tools" | "reply" | "reward"; readonly step: null; readonly differences: readonly Difference[] }
  | { readonly at: "observation" | "state" | "step reward"; readonly step: number; readonly differences: readonly Difference[] };

/** A divergence as a sentence: where, and the first value that differs. */
export function divergenceText({ at, step, differences: [first] }: Divergence): string {
  const shown = (value: unknown) => (JSON.stringify(value) ?? "nothing").slice(0, MAX_VALUE);
  const values = first === undefined ? "" : `: ${first.path || "it"} was ${shown(first.expected)} and is now ${shown(first.actual)}`;
  return `the ${step === null ? at : `${at} of step ${step}`} differs${values}`;
}

const MAX_VALUE = 100;

export type ReplayResult =
  | { readonly kind: "equal"; readonly steps: number }
  | { readonly kind: "diverged"; readonly divergence: Divergence };

export interface PlayedAgain {
  readonly episode: Played;
  readonly divergence: Divergence | null;
}

export interface ReplayOptions {
  readonly instance: EpisodeInstance;
  readonly signal: AbortSignal;
  readonly now: () => number;
  /** Whether models are called for what is not in the trajectory's recording; by default, that is an error. */
  readonly recordingMode?: "recorded" | "fill";
}

/**
 * Plays the actions of a trajectory again on a fresh instance and compares everything that the environment answered: the prompt, each
 * observation, the digest of the state where the trajectory holds it, the replies, and the score.
 */
export async function replay(trajectory: Trajectory, options: ReplayOptions): Promise<ReplayResult> {
  const { episode, divergence } = await playAgain(trajectory, options);
  const found = divergence ?? compareStepRewards(trajectory.steps, stepsOf(episode)) ?? (await compareScore(trajectory, episode));
  return found === null ? { kind: "equal", steps: trajectory.steps.length } : { kind: "diverged", divergence: found };
}

/** A trajectory's actions on a fresh instance, and where the environment first answered something else; rewards are not compared. */
export async function playAgain(trajectory: Trajectory, options: ReplayOptions): Promise<PlayedAgain> {
  const { instance, signal, now, recordingMode = "recorded" } = options;
  const recordsDigests = trajectory.steps.some(({ state_digest }) => state_digest !== null);
  const episode = await beginEpisode({
    instance,
    task: trajectory.task.inline ?? trajectory.task.id,
    seed: trajectory.seed,
    limits: limitsOf(trajectory),
    signal,
    recordsDigests,
    recording: recordingOf(trajectory, recordingMode),
    now,
  });
  if (episode instanceof Match) return { episode, divergence: await playMatchAgain(trajectory, episode, signal) };
  const before = compareBeginning(trajectory, episode);
  if (before !== null) return { episode, divergence: before };
  // Asked for its solution, an environment may put files in place that the actions use.
  if (trajectory.provenance.agent === "oracle" && episode.abilities.oracle) await instance.episode.oracle({ signal });
  await episode.play(
    await replayAgent(trajectory).begin({ task: { id: null, instruction: null }, tools: [], seed: 0, oracle: async () => null }),
  );
  const divergence = compareSteps(trajectory.steps, episode.record.steps) ?? compareMessages(trajectory, episode);
  return { episode, divergence };
}

/** The answers of the environment's models, so that they need not be called again. */
function recordingOf({ recording }: Trajectory, mode: "recorded" | "fill"): RecordingRequest | undefined {
  if (recording === undefined) return undefined;
  return { mode, entries: recording.map(({ path, model, digest, answer }) => ({ path, model, digest, answer })) };
}

/** Each role does again what it did, when it is its turn. */
async function playMatchAgain({ id, roles = {}, seed, steps }: Trajectory, match: Match, signal: AbortSignal): Promise<Divergence | null> {
  const before = Object.entries(roles).flatMap(([role, { messages, tools }]): Divergence[] => {
    const { record, tools: now } = match.part(role);
    const prompt = differences(messages.slice(0, record.messages.length), record.messages);
    if (prompt.length > 0) return [{ at: "prompt", step: null, differences: prompt }];
    const found = differences(tools, now);
    return found.length > 0 ? [{ at: "tools", step: null, differences: found }] : [];
  });
  if (before[0] !== undefined) return before[0];
  for (const [role, { agent }] of Object.entries(roles))
    if (agent === "oracle" && match.abilities.oracle) await match.instance.episode.oracle({ signal, role });
  const players = Object.entries(roles).map(([role, { player, model, trainable, messages }]) => {
    const agent = replayAgent({ id, messages, steps: [] });
    return [role, { player, agent, model, trainable, seed }] as const;
  });
  await match.assign(new Map(players));
  await match.play();
  const conversations = () =>
    Object.entries(roles).flatMap(([role, { messages }]): Divergence[] => {
      const found = differences(messages, match.part(role).record.messages);
      return found.length > 0 ? [{ at: "reply", step: null, differences: found }] : [];
    });
  return compareSteps(steps, match.steps) ?? conversations()[0] ?? null;
}

/** The steps of an episode of one agent or of several. */
export function stepsOf(episode: Played): readonly Step[] {
  return episode instanceof Match ? episode.steps : episode.record.steps;
}

/** A limit may have ended the episode in the middle of a message with several calls. */
function limitsOf({ truncated, steps, roles }: Trajectory): Limits {
  if (!truncated) return {};
  // Each role counts its own calls, and one of them ended the episode.
  const made = Object.entries(roles ?? {}).flatMap(([role, { truncated: isCut }]) =>
    isCut ? [steps.filter((step) => step.role === role).length] : [],
  );
  return { toolCalls: made[0] ?? steps.length };
}

function compareBeginning({ messages, tools, steps }: Trajectory, episode: Episode): Divergence | null {
  // A program writes its conversation itself: it need not hold the environment's prompt.
  const prompt = isOfProgram(steps) ? [] : differences(messages.slice(0, episode.record.messages.length), episode.record.messages);
  if (prompt.length > 0) return { at: "prompt", step: null, differences: prompt };
  const found = differences(tools, episode.tools);
  return found.length > 0 ? { at: "tools", step: null, differences: found } : null;
}

function compareSteps(expected: readonly Step[], actual: readonly Step[]): Divergence | null {
  for (const [step, one] of expected.entries()) {
    const other = actual[step];
    const observation = differences(one.result, other?.result);
    if (observation.length > 0) return { at: "observation", step, differences: observation };
    const state = one.state_digest === null ? [] : differences(one.state_digest, other?.state_digest);
    if (state.length > 0) return { at: "state", step, differences: state };
  }
  return null;
}

function compareStepRewards(expected: readonly Step[], actual: readonly Step[]): Divergence | null {
  for (const [step, one] of expected.entries()) {
    const reward = differences(one.reward, actual[step]?.reward);
    if (reward.length > 0) return { at: "step reward", step, differences: reward };
  }
  return null;
}

function compareMessages({ messages, steps }: Trajectory, episode: Episode): Divergence | null {
  if (isOfProgram(steps)) return null;
  const found = differences(messages, episode.record.messages);
  return found.length > 0 ? { at: "reply", step: null, differences: found } : null;
}

async function compareScore({ outcome, reward_args, roles }: Trajectory, episode: Played): Promise<Divergence | null> {
  if (outcome.kind === "unscored") return null;
  const now = await episode.score(reward_args);
  const ofRoles = roles && Object.fromEntries(Object.entries(roles).map(([role, { outcome: own }]) => [role, own]));
  const whole = differences(outcome, now);
  const found = whole.length > 0 || !(episode instanceof Match) ? whole : differences(ofRoles, episode.outcomes(now));
  return found.length > 0 ? { at: "reward", step: null, differences: found } : null;
}
