import type { Trajectory } from "@aenv/contract";
import { type EpisodeSpec, type PlayOptions, playEpisode, usualStages } from "./play.ts";

/** Arguments of a reward; null for an answer that is worth nothing without being graded. */
export type GradedArguments = Readonly<Record<string, unknown>> | null;

/**
 * Scores an answer that exists already: the reward is called with these arguments on an instance without a task, and no agent plays.
 * Never throws: what goes wrong is the episode's outcome.
 */
export function gradeEpisode(spec: EpisodeSpec, args: GradedArguments, options: PlayOptions): Promise<Trajectory> {
  const withoutTask = { ...spec, task: { id: null, split: null, index: null } };
  const { start, reset } = usualStages(withoutTask, options);
  return playEpisode(spec, options, {
    start: async (signal) => ({ ...(await start(signal)), task: spec.task }),
    reset: (lease, signal) => reset({ ...lease, task: withoutTask.task }, signal),
    play: async () => "done",
    score: (episode) => (args === null ? Promise.resolve(WORTHLESS) : episode.score(args)),
  });
}

const WORTHLESS = { kind: "scored", reward: 0, components: {} } as const;
