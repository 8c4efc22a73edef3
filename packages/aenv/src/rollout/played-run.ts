import {
  type EpisodeSpec,
  ForkedGroups,
  type GradedArguments,
  gradeEpisode,
  type Prices,
  playEpisode,
  playRun,
  type RunOptions,
  type RunResult,
} from "@aenv/rollout";
import type { Terminal } from "../terminal/terminal.ts";
import { warn } from "../terminal/warning.ts";
import type { ChosenAgent } from "./chosen-agent.ts";
import { Episodes } from "./episodes.ts";
import { LiveView } from "./live-view.ts";
import type { Source } from "./source.ts";

export interface RunToPlay extends Omit<RunOptions, "episodes" | "play" | "onDone" | "onProgress"> {
  readonly source: Source;
  readonly chosen: Pick<ChosenAgent, "agent" | "players" | "upstream" | "modelName">;
  readonly deadlineMs: number;
  readonly prices?: Prices | null;
  /** The arguments of the reward for an answer that exists already; without it the agent plays. */
  readonly answerOf?: (spec: EpisodeSpec) => GradedArguments;
}

/** Plays a run and shows how far it is. Afterwards it says why episodes were unscored. */
export async function playShown(run: RunToPlay, terminal: Terminal): Promise<RunResult> {
  const { folder, settings, source, chosen, concurrency, deadlineMs, prices = null, answerOf, cancel } = run;
  await using episodes = await Episodes.open({
    source,
    limits: settings.limits,
    recordsDigests: settings.records_digests,
    rewardArgs: settings.reward_args,
    hasPrograms: "run" in chosen.agent,
    prices,
    onBusy: concurrency.noteBusy,
    onArtifacts: ({ id }, files) => folder.artifacts.keep(id, files),
  });
  const options = episodes.optionsFor({ ...chosen, deadlineMs, cancel });
  await using forks = settings.fork_at === undefined ? null : new ForkedGroups(options, settings.fork_at);
  const view = new LiveView(terminal);
  const reasons = new Map<string, string>();
  const result = await playRun({
    ...run,
    play: (spec) => {
      if (answerOf !== undefined) return gradeEpisode(spec, answerOf(spec), options);
      return forks === null ? playEpisode(spec, options) : forks.play(spec);
    },
    onDone: (planned) => forks?.done(planned),
    onProgress: (progress) => {
      const outcome = progress.last?.outcome;
      if (outcome?.kind === "unscored") reasons.set(outcome.cause, outcome.message);
      view.show(progress);
    },
  }).finally(() => view.end());
  for (const [cause, message] of reasons) warn(terminal, `unscored by ${cause}, the last one: ${message}`);
  return result;
}
