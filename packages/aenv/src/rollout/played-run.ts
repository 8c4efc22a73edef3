import {
  costOfTurns,
  digestOf,
  Instances,
  type PlayOptions,
  type Prices,
  playEpisode,
  playRun,
  RecordingServer,
  type RunFolder,
  type RunResult,
  type RunSettings,
} from "@aenv/rollout";
import { ownPackage } from "../project/own-package.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { warn } from "../terminal/warning.ts";
import type { ChosenAgent } from "./agent-options.ts";
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
  readonly deadlineMs: number;
  readonly prices: Prices | null;
  readonly stop: AbortSignal;
}

/** Plays a run and shows how far it is. Afterwards it says why episodes were unscored. */
export async function playShown(run: RunToPlay, terminal: Terminal): Promise<RunResult> {
  const { folder, settings, source, chosen, busy, prices, stop } = run;
  await using recorder = "run" in chosen.agent ? await RecordingServer.open() : null;
  const provenance = {
    environment: source.environment,
    environment_digest: source.digest,
    engine: null,
    isolation: null,
    server_version: null,
  };
  await using instances = new Instances({ environment: source.environment, options: source.options, provenance, onBusy: busy.notify });
  const play: PlayOptions = {
    agent: chosen.agent,
    recorder,
    model: chosen.upstream,
    limits: settings.limits,
    deadlineMs: run.deadlineMs,
    recordsDigests: settings.records_digests,
    acquire: (spec, signal) => instances.acquire(spec, signal),
    provenance: {
      agent: chosen.agent.name,
      agent_digest: digestOf(chosen.agent.settings),
      model: chosen.modelName,
      client_version: ownPackage().version,
    },
    digestOf,
    costOf: (turns) => (prices === null ? null : costOfTurns(turns, prices)),
    cancel: stop,
    now: () => performance.now(),
    date: () => new Date(),
  };
  const view = new LiveView(terminal);
  const reasons = new Map<string, string>();
  const result = await playRun({
    folder,
    settings,
    concurrency: run.concurrency,
    retries: run.retries,
    play: (spec) => playEpisode(spec, play),
    onProgress: (progress) => {
      const outcome = progress.last?.outcome;
      if (outcome?.kind === "unscored") reasons.set(outcome.cause, outcome.message);
      view.show(progress);
    },
    onBusy: (listener) => busy.listen(listener),
    cancel: stop,
  }).finally(() => view.end());
  for (const [cause, message] of reasons) warn(terminal, `unscored by ${cause}, the last one: ${message}`);
  return result;
}
