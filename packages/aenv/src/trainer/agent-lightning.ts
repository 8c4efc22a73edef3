import { setTimeout as pause } from "node:timers/promises";
import { messageOf, type Outcome, type Trajectory } from "@aenv/contract";
import { playAttempts } from "@aenv/rollout";
import * as z from "zod";
import { TrainerError, type TrainerHttp } from "./http.ts";

/** What a rollout's `input` must hold: the task, and a seed if the trainer chooses it. */
const input = z.union([
  z.string().transform((task) => ({ task, seed: undefined })),
  z.looseObject({
    task: z.union([z.string(), z.looseObject({ id: z.string() }).transform(({ id }) => id)]),
    seed: z.number().int().nonnegative().optional(),
  }),
]);

const rollout = z.looseObject({
  rollout_id: z.string(),
  input: z.unknown(),
  is_train: z.boolean(),
  config: z.looseObject({ timeout_seconds: z.number().positive() }),
});
const rollouts = z.array(rollout);

/** A rollout that the trainer wants to be played. */
export interface WantedRollout {
  readonly id: string;
  readonly attempt: number;
  readonly task: string;
  readonly seed: number | undefined;
  /** Where the trainer's gateway offers the model for this attempt; it records the tokens. */
  readonly modelUrl: string;
  readonly timeoutMs: number;
}

/** A rollout that has ended and was reported to the trainer. */
export interface EndedRollout {
  readonly id: string;
  readonly task: string | null;
  readonly outcome: Outcome | { readonly kind: "refused"; readonly message: string };
}

export interface ControllerOptions {
  readonly api: TrainerHttp;
  readonly play: (wanted: WantedRollout, cancel: AbortSignal) => Promise<Trajectory>;
  readonly concurrency: number;
  /** Further attempts after an outcome that is unscored and retryable. */
  readonly retries: number;
  readonly pollMs: number;
  /** Ends when nothing is queued or running. */
  readonly untilIdle: boolean;
  readonly onEnded: (ended: EndedRollout) => void;
  readonly cancel: AbortSignal;
}

const PAGE = 50;

/**
 * Acts as a controller of Agent Lightning: takes queued rollouts, plays them against the gateway, and reports the reward. An unscored
 * episode is reported as failed, without a reward. Several controllers may share a gateway: each rollout is taken by one.
 */
export async function controlRollouts(options: ControllerOptions): Promise<void> {
  const { api, concurrency, pollMs, untilIdle, cancel } = options;
  const broken = new AbortController();
  const stop = AbortSignal.any([cancel, broken.signal]);
  const running = new Set<Promise<void>>();
  let failure: unknown;
  const begin = (wanted: z.infer<typeof rollout>) => {
    const one = controlOne(wanted, options, stop)
      .catch((error: unknown) => {
        failure ??= error;
        broken.abort();
      })
      .finally(() => running.delete(one));
    running.add(one);
  };
  try {
    while (!stop.aborted) {
      const limit = Math.min(PAGE, concurrency - running.size);
      const queued = limit === 0 ? [] : rollouts.parse(await api.call("GET", `/api/rollouts?state_in=queuing&limit=${limit}`));
      const taken = await Promise.all(queued.map((wanted) => take(api, wanted)));
      for (const [index, wanted] of queued.entries()) if (taken[index]) begin(wanted);
      if (untilIdle && queued.length === 0 && running.size === 0) break;
      if (queued.length === 0 || running.size >= concurrency) await nextChange(running, pollMs, stop);
    }
  } catch (error) {
    failure ??= error;
    broken.abort();
  }
  await Promise.all(running);
  if (failure !== undefined) throw failure;
}

/** Marks the rollout as running; false if another controller has taken it, or the trainer has removed it. */
async function take(api: TrainerHttp, { rollout_id: id }: z.infer<typeof rollout>): Promise<boolean> {
  return patch(api, id, { state: "running", last_attempt_id: "0" });
}

async function controlOne(wanted: z.infer<typeof rollout>, options: ControllerOptions, stop: AbortSignal): Promise<void> {
  const { api, retries, play, onEnded } = options;
  const { rollout_id: id, is_train, config } = wanted;
  const parsed = input.safeParse(wanted.input);
  if (!parsed.success) {
    const message = `the rollout's input names no task; write it as {"task": "ID"}, it is ${JSON.stringify(wanted.input)?.slice(0, 200)}`;
    await patch(api, id, { state: "failed", error_message: message });
    onEnded({ id, task: null, outcome: { kind: "refused", message } });
    return;
  }
  const { task, seed } = parsed.data;
  const { attempt, outcome } = await playAttempts({ retries, cancel: stop }, async (attempt) => {
    // The trainer reads the model's answers of the last attempt only, so that those of a failed one are not trained on.
    if (attempt > 0) await patch(api, id, { last_attempt_id: String(attempt) });
    const modelUrl = `${api.url}/proxy/rollout/${encodeURIComponent(id)}/attempt/${attempt}/mode/${is_train ? "train" : "val"}/openai/v1`;
    return play({ id, attempt, task, seed, modelUrl, timeoutMs: config.timeout_seconds * 1_000 }, stop);
  });
  await report(api, id, attempt, outcome);
  onEnded({ id, task, outcome });
}

async function report(api: TrainerHttp, id: string, attempt: number, outcome: Outcome): Promise<void> {
  if (outcome.kind === "unscored") {
    const { cause, stage, message } = outcome;
    await patch(api, id, { state: "failed", error_message: `unscored by ${cause} at ${stage}: ${message}` });
    return;
  }
  const event = { event_type: "reward", data: { value: outcome.reward } };
  try {
    await api.call("POST", `/api/rollouts/${encodeURIComponent(id)}/attempt/${attempt}/events`, event);
  } catch (error) {
    if (isGone(error)) return;
    await patch(api, id, { state: "failed", error_message: `the reward could not be reported: ${messageOf(error)}` });
    throw error;
  }
  await patch(api, id, { state: "succeeded" });
}

/** False if the rollout has ended already or is not there any more. */
async function patch(api: TrainerHttp, id: string, status: Readonly<Record<string, string>>): Promise<boolean> {
  try {
    await api.call("PATCH", `/api/rollouts/${encodeURIComponent(id)}`, { status });
    return true;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return error instanceof TrainerError && (error.status === 404 || error.status === 409);
}

/** Resolves when a rollout has ended, it is time to ask again, or the controller is stopped. */
async function nextChange(running: ReadonlySet<Promise<void>>, ms: number, stop: AbortSignal): Promise<void> {
  const timer = new AbortController();
  const wait = pause(ms, undefined, { signal: AbortSignal.any([stop, timer.signal]) }).catch(() => undefined);
  await Promise.race([wait, ...running]);
  timer.abort();
}
