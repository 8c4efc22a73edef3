import type { UnscoredCause } from "@aenv/contract";
import {
  type EpisodeSpec,
  ForkedGroups,
  type GradedArguments,
  gradeEpisode,
  type Prices,
  playEpisode,
  playRun,
  type RunFolder,
  type RunOptions,
  type RunResult,
  type RunSettings,
} from "@aenv/rollout";
import type { Terminal } from "../terminal/terminal.ts";
import { warn } from "../terminal/warning.ts";
import type { ChosenAgent } from "./chosen-agent.ts";
import { Episodes } from "./episodes.ts";
import { LiveView } from "./live-view.ts";
import type { Source } from "./source.ts";

/** Passes on the signs of a busy server or model. */
export class BusySigns {
  readonly #listeners: ((pauseMs: number) => void)[] = [];
  readonly notify = (pauseMs: number): void => {
    for (const listener of this.#listeners) listener(pauseMs);
  };

  listen(listener: (pauseMs: number) => void): void {
    this.#listeners.push(listener);
  }
}

export interface RunToPlay {
  readonly folder: RunFolder;
  readonly settings: RunSettings;
  readonly source: Source;
  readonly chosen: ChosenAgent;
  readonly busy: BusySigns;
  readonly concurrency: number;
  readonly retries: number;
  readonly retriesOf: Readonly<Partial<Record<UnscoredCause, number>>>;
  readonly playsUnscoredAgain: boolean;
  readonly deadlineMs: number;
  readonly prices: Prices | null;
  readonly stop: AbortSignal;
  readonly onEpisode?: RunOptions["onEpisode"];
  /** The arguments of the reward for an answer that exists already; without it the agent plays. */
  readonly answerOf?: (spec: EpisodeSpec) => GradedArguments;
}

/** Plays a run and shows how far it is. Afterwards it says why episodes were unscored. */
export async function playShown(run: RunToPlay, terminal: Terminal): Promise<RunResult> {
  const { folder, settings, source, chosen, busy, prices, stop } = run;
  await using episodes = await Episodes.open({
    source,
    limits: settings.limits,
    recordsDigests: settings.records_digests,
    rewardArgs: settings.reward_args,
    hasPrograms: "run" in chosen.agent,
    prices,
    onBusy: busy.notify,
    onArtifacts: ({ id }, files) => folder.artifacts.keep(id, files),
  });
  const options = episodes.optionsFor({ ...chosen, deadlineMs: run.deadlineMs, cancel: stop });
  await using forks = settings.fork_at === undefined ? null : new ForkedGroups(options, settings.fork_at);
  const view = new LiveView(terminal);
  const reasons = new Map<string, string>();
  const result = await playRun({
    folder,
    settings,
    concurrency: run.concurrency,
    retries: run.retries,
    retriesOf: run.retriesOf,
    playsUnscoredAgain: run.playsUnscoredAgain,
    play: (spec) => {
      if (run.answerOf !== undefined) return gradeEpisode(spec, run.answerOf(spec), options);
      return forks === null ? playEpisode(spec, options) : forks.play(spec);
    },
    onDone: (planned) => forks?.done(planned),
    onProgress: (progress) => {
      const outcome = progress.last?.outcome;
      if (outcome?.kind === "unscored") reasons.set(outcome.cause, outcome.message);
      view.show(progress);
    },
    onBusy: (listener) => busy.listen(listener),
    ...(run.onEpisode && { onEpisode: run.onEpisode }),
    cancel: stop,
  }).finally(() => view.end());
  for (const [cause, message] of reasons) warn(terminal, `unscored by ${cause}, the last one: ${message}`);
  return result;
}
