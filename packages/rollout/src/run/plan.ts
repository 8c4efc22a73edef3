import { hash } from "node:crypto";
import type { Task, Trajectory } from "@aenv/contract";

/** One planned episode of a run. */
export interface PlannedEpisode {
  /** Its position in the plan, the same whenever the plan is made again. */
  readonly number: number;
  readonly id: string;
  readonly task: Trajectory["task"];
  readonly group: NonNullable<Trajectory["group"]>;
  readonly seed: number;
}

export interface PlanOptions {
  readonly run: string;
  readonly tasks: readonly Pick<Task, "id" | "split">[];
  /** Samples of each task. */
  readonly samples: number;
  readonly seed: number;
  /** Samples are forks of one episode, so they follow each other and their environments have the same seed. */
  readonly fork_at?: number | undefined;
}

/** How many episodes a plan holds. */
export function planSize({ tasks, samples }: Pick<PlanOptions, "tasks" | "samples">): number {
  return Math.max(1, tasks.length) * samples;
}

/**
 * The episodes of a run: the first sample of every task, then the second of every task, and so on. So a run that is stopped early has
 * seen all tasks about equally often. Forks are planned task by task. An environment without tasks has one group.
 */
export function* planEpisodes({ run, tasks, samples, seed, fork_at }: PlanOptions): Generator<PlannedEpisode> {
  const all = tasks.length === 0 ? [null] : tasks;
  const isForked = fork_at !== undefined;
  for (let number = 0; number < all.length * samples; number++) {
    const [index, sample] = isForked
      ? [Math.floor(number / samples), number % samples]
      : [number % all.length, Math.floor(number / all.length)];
    const task = all[index] ?? null;
    yield {
      number,
      id: `${run}/${index}-${sample}`,
      task: { id: task?.id ?? null, split: task?.split ?? null, index: task === null ? null : index },
      group: { id: `${run}/${index}`, index: sample, size: samples },
      seed: seedOf(seed, task?.id ?? "", isForked ? 0 : sample),
    };
  }
}

/** A seed of its own for each episode, which depends on nothing but the run's seed, the task and the sample. */
function seedOf(seed: number, task: string, sample: number): number {
  return hash("sha256", `${seed}\n${task}\n${sample}`, "buffer").readUInt32BE(0) >>> 1;
}
