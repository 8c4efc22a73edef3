import { setTimeout as pause } from "node:timers/promises";
import { messageOf, type Trajectory } from "@aenv/contract";
import { tokenRows } from "@aenv/rollout";
import * as z from "zod";
import { TrainerError, type TrainerHttp } from "./http.ts";

const info = z.looseObject({ batch_size: z.number(), max_token_len: z.number() });
const registered = z.looseObject({ status: z.string(), env_id: z.number().int().optional(), num_steps: z.number().optional() });
const progress = z.looseObject({ current_step: z.number(), queue_size: z.number() });

/** An episode that a group needs. `epoch` and `attempt` make its seed differ from those before. */
export interface WantedEpisode {
  readonly task: string | null;
  readonly group: number;
  readonly index: number;
  readonly epoch: number;
  readonly attempt: number;
}

/** A group that was sent, or left out because too few of its episodes can be trained on. */
export interface EndedGroup {
  readonly group: number;
  readonly task: string | null;
  readonly rewards: readonly number[];
  /** Null if it was sent. */
  readonly leftOut: string | null;
}

export interface FeedOptions {
  readonly api: TrainerHttp;
  readonly name: string;
  readonly weight: number;
  /** Null: what the trainer trains on. */
  readonly maxTokenLength: number | null;
  readonly tasks: readonly (string | null)[];
  readonly groupSize: number;
  /** Groups that are played at the same time. */
  readonly concurrency: number;
  /** Further attempts for an episode that cannot be trained on. */
  readonly retries: number;
  /** Groups to be played; null: until the trainer has its steps. */
  readonly groups: number | null;
  /** Waits while the trainer has this many batches that it has not used. */
  readonly maxBatches: number;
  readonly pollMs: number;
  readonly play: (wanted: WantedEpisode, cancel: AbortSignal) => Promise<Trajectory>;
  readonly onWaiting: (reason: string) => void;
  readonly onEnded: (ended: EndedGroup) => void;
  readonly cancel: AbortSignal;
}

/** So many groups in a row that were left out mean that something is wrong for all of them. */
const MOST_LEFT_OUT = 10;
/** What Atropos has in the masks, and in the log-probabilities, of tokens that are not trained. */
const UNTRAINED_MASK = -100;
const UNTRAINED_LOGPROB = 1;

/**
 * Plays groups of episodes and pushes each to an Atropos server, until the trainer has its steps. An episode that is unscored, longer
 * than the trainer takes, or has drifted into several token sequences is played again; a group that stays incomplete is left out.
 */
export async function feedGroups(options: FeedOptions): Promise<void> {
  const { api, tasks, concurrency, groups, onEnded, cancel } = options;
  const trainer = await register(options);
  if (trainer === null) return;
  const ended = new AbortController();
  const stop = AbortSignal.any([cancel, ended.signal]);
  let next = 0;
  let leftOutInARow = 0;
  const feed = async () => {
    while (!stop.aborted && (groups === null || next < groups)) {
      if (await hasEnough(options, trainer, stop)) return ended.abort();
      if (groups !== null && next >= groups) return;
      const number = next++;
      const task = tasks[number % tasks.length] ?? null;
      const played = await playGroup(options, trainer, { group: number, task, epoch: Math.floor(number / tasks.length) }, stop);
      if (played === null) return;
      leftOutInARow = played.leftOut === null ? 0 : leftOutInARow + 1;
      onEnded(played);
      if (played.leftOut !== null && leftOutInARow >= MOST_LEFT_OUT)
        throw new TrainerError(`${leftOutInARow} groups in a row were left out, the last one because ${played.leftOut}`, 400);
    }
  };
  try {
    const feeds = Array.from({ length: concurrency }, () =>
      feed().catch((error: unknown) => {
        ended.abort();
        throw error;
      }),
    );
    for (const result of await Promise.allSettled(feeds)) if (result.status === "rejected") throw result.reason;
  } finally {
    await api.callOnce("POST", "/disconnect-env", { env_id: trainer.id }).catch(() => undefined);
  }
}

interface Trainer {
  readonly id: number;
  readonly steps: number;
  readonly batchSize: number;
  /** 0: any length. */
  readonly maxTokens: number;
}

/** Waits for the trainer, and registers the environment; null if it was cancelled before. */
async function register(options: FeedOptions): Promise<Trainer | null> {
  const { api, name, weight, groupSize, maxTokenLength, pollMs, onWaiting, cancel } = options;
  for (let isFirst = true; !cancel.aborted; isFirst = false) {
    const { batch_size, max_token_len } = info.parse(await api.call("GET", "/info"));
    if (batch_size > 0 && groupSize > batch_size)
      throw new TrainerError(
        `a group of ${groupSize} does not fit into the trainer's batch of ${batch_size}; choose a smaller one with -n`,
        400,
      );
    const maxTokens = Math.max(0, max_token_len);
    const body = { max_token_length: maxTokenLength ?? maxTokens, desired_name: name, weight, group_size: groupSize };
    const { env_id: id, num_steps: steps = 0, status } = registered.parse(await api.call("POST", "/register-env", body));
    if (id !== undefined) return { id, steps, batchSize: batch_size, maxTokens };
    if (isFirst) onWaiting(status);
    await rest(pollMs, cancel);
  }
  return null;
}

/** Waits while the trainer's queue is full. True if the trainer has done its steps. */
async function hasEnough({ api, groupSize, maxBatches, pollMs }: FeedOptions, trainer: Trainer, stop: AbortSignal): Promise<boolean> {
  while (!stop.aborted) {
    const { current_step, queue_size } = progress.parse(await api.call("GET", "/status"));
    if (trainer.steps > 0 && current_step >= trainer.steps) return true;
    if (queue_size * groupSize < maxBatches * trainer.batchSize) return false;
    await rest(pollMs, stop);
  }
  return true;
}

interface Sequence {
  readonly tokens: readonly number[];
  readonly mask: readonly number[];
  readonly logprobs: readonly number[];
  readonly reward: number;
}

/** Null if it was cancelled. */
async function playGroup(
  options: FeedOptions,
  trainer: Trainer,
  { group, task, epoch }: { group: number; task: string | null; epoch: number },
  stop: AbortSignal,
): Promise<EndedGroup | null> {
  const { api, groupSize, retries, play } = options;
  const member = async (index: number): Promise<Sequence | string> => {
    for (let attempt = 0; ; attempt++) {
      const sequence = sequenceOf(await play({ task, group, index, epoch, attempt }, stop), trainer.maxTokens);
      if (typeof sequence !== "string" || attempt >= retries || stop.aborted) return sequence;
    }
  };
  const members = await Promise.all(Array.from({ length: groupSize }, (_, index) => member(index)));
  const sequences = members.filter((one) => typeof one !== "string");
  const problem = members.find((one) => typeof one === "string");
  if (problem !== undefined && stop.aborted) return null;
  const rewards = sequences.map(({ reward }) => reward);
  if (problem !== undefined) {
    return {
      group,
      task,
      rewards,
      leftOut: `${groupSize - sequences.length} of ${groupSize} episodes have no score to train on: ${problem}`,
    };
  }
  try {
    // Not repeated: if the answer is lost, nobody knows whether the trainer has the group.
    await api.callOnce("POST", "/scored_data", {
      tokens: sequences.map(({ tokens }) => tokens),
      masks: sequences.map(({ mask }) => mask),
      scores: rewards,
      inference_logprobs: sequences.map(({ logprobs }) => logprobs),
      env_id: trainer.id,
    });
    return { group, task, rewards, leftOut: null };
  } catch (error) {
    return { group, task, rewards, leftOut: `it could not be sent: ${messageOf(error)}` };
  }
}

/** The one token sequence of a scored episode, or why there is none to train on. */
export function sequenceOf(trajectory: Trajectory, maxTokens: number): Sequence | string {
  const { outcome } = trajectory;
  if (outcome.kind === "unscored") return `unscored by ${outcome.cause}: ${outcome.message}`;
  if (trajectory.capture !== "tokens") return "the model returned no token ids";
  const [row, ...others] = tokenRows(trajectory);
  if (row === undefined) return "the model was not asked";
  if (others.length > 0) return `it drifted into ${others.length + 1} token sequences, and Atropos takes one`;
  const { input_ids: tokens, loss_mask, logprobs } = row as { input_ids: number[]; loss_mask: (0 | 1)[]; logprobs: number[] };
  if (maxTokens > 0 && tokens.length >= maxTokens) return `it has ${tokens.length} tokens, and the trainer takes fewer than ${maxTokens}`;
  return {
    tokens,
    mask: tokens.map((id, at) => (loss_mask[at] === 1 ? id : UNTRAINED_MASK)),
    logprobs: logprobs.map((value, at) => (loss_mask[at] === 1 ? value : UNTRAINED_LOGPROB)),
    reward: outcome.reward,
  };
}

async function rest(ms: number, stop: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal: stop }).catch(() => undefined);
}
