import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Trajectory } from "@aenv/contract";
import type { BenchModule, BenchRun, FinishedEpisode, Prediction } from "@aenv/kit";
import type { RunFolder, RunSettings } from "@aenv/rollout";
import type { RunListener } from "../rollout/rollout.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { Dataset } from "./dataset.ts";

export interface ResultsInput {
  readonly module: BenchModule;
  readonly dataset: Dataset;
  readonly folder: RunFolder;
  readonly settings: RunSettings;
  readonly concurrency: number;
  /** Where result files are written; `results` in the run's folder if not given. */
  readonly out: string | undefined;
  readonly predictions?: ReadonlyMap<string, Prediction>;
}

/** The folder of the benchmark's own result files. */
export function resultsFolder(folder: RunFolder, out: string | undefined, { cwd }: Terminal): string {
  return out === undefined ? join(folder.path, "results") : resolve(cwd, out);
}

export function benchRunOf(folder: RunFolder, { agent, model }: RunSettings, startedAt: Date): BenchRun {
  return { id: folder.name, agent: agent.name, model, startedAt };
}

/** Writes the benchmark's own result files while a run is played; undefined if it has none. */
export async function openResults(input: ResultsInput, terminal: Terminal): Promise<RunListener | undefined> {
  const { module, dataset, folder, settings, predictions } = input;
  if (module.results === undefined) return undefined;
  const to = resultsFolder(folder, input.out, terminal);
  mkdirSync(to, { recursive: true });
  const startedAt = await startOf(folder);
  const results = await module.results({
    dataFolder: dataset.folder,
    folder: to,
    run: benchRunOf(folder, settings, startedAt),
    taskIds: settings.tasks.map(({ id }) => id),
    samples: settings.samples,
    concurrency: input.concurrency,
  });
  // Results are written one after the other, so that a benchmark can write files that belong to all episodes.
  let last: Promise<void> = Promise.resolve();
  return {
    onEpisode: (trajectory) => {
      const written = last.then(() => results.episode(finished(trajectory, folder, predictions)));
      last = written.catch(() => {});
      return written;
    },
    end: async () => (await results.end()).summary,
  };
}

/** When the first episode of a run began that is gone on with; now for a new one. */
export async function startOf(folder: RunFolder): Promise<Date> {
  for await (const { timing } of folder.trajectories()) return new Date(timing.started_at);
  return new Date();
}

function finished(trajectory: Trajectory, folder: RunFolder, predictions: ResultsInput["predictions"]): FinishedEpisode {
  const { id, task, group, attempt, outcome } = trajectory;
  return {
    taskId: task.id,
    sample: group?.index ?? 0,
    attempt,
    outcome,
    artifacts: folder.artifacts.read(id),
    trajectory,
    prediction: predictions?.get(task.id ?? "") ?? null,
  };
}
