import type { Trajectory } from "@aenv/contract";
import { Episode } from "./episode.ts";
import { type EpisodeSpec, type PlayOptions, playFrom } from "./play.ts";

/** Arguments of a reward; null for an answer that is worth nothing without being graded. */
export type GradedArguments = Readonly<Record<string, unknown>> | null;

/**
 * Scores an answer that exists already: the reward is called with these arguments on an instance without a task, and no agent plays.
 * Never throws: what goes wrong is the episode's outcome.
 */
export function gradeEpisode(spec: EpisodeSpec, args: GradedArguments, options: PlayOptions): Promise<Trajectory> {
  const withoutTask = { ...spec, task: { id: null, split: null, index: null } };
  const { limits, recordsDigests, now } = options;
  return playFrom(
    {
      acquire: async (signal) => {
        const lease = await options.acquire(withoutTask, signal);
        return { ...lease, task: spec.task };
      },
      beginEpisode: (_, { seed }, __, instance, signal) =>
        Episode.begin({ instance, task: null, seed, limits, signal, recordsDigests, now }),
      play: async () => "done",
      score: (episode) => (args === null ? Promise.resolve(WORTHLESS) : episode.score(args)),
      parent: null,
    },
    spec,
    options,
  );
}

const WORTHLESS = { kind: "scored", reward: 0, components: {} } as const;
