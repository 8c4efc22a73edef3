import { join } from "node:path";
import type { ResultsOptions } from "@aenv/kit";
import type { TrialResult } from "../results/trial-result.ts";
import type { Task } from "../task/model.ts";
import { type Tb1Result, type Tb1Run, tb1Result, writeTb1Run, writeTb1Trial } from "../tb1/result-files.ts";
import type { FinishedEpisode } from "./episode.ts";

interface Tb1Input extends ResultsOptions {
  readonly uuid: string;
  readonly source: string | null;
}

/** Writes the result files of Terminal-Bench 1 beside those of Harbor, if tasks have its format. */
export function openTb1Files({ run, folder, dataFolder, taskIds, samples, concurrency, uuid, source }: Tb1Input): {
  add(task: Task, episode: FinishedEpisode, result: TrialResult): Promise<void>;
  /** The folder of the files; null if there are none. */
  end(): Promise<string | null>;
} {
  const done = new Map<string, Tb1Result>();
  const runOf = (endedAt: string | null): Tb1Run => ({
    id: run.id,
    uuid,
    folder: join(folder, "terminal-bench-1", run.id),
    datasetPath: dataFolder,
    datasetName: source,
    agent: run.agent,
    model: run.model,
    taskIds,
    samples,
    concurrency,
    startedAt: run.startedAt.toISOString(),
    endedAt,
  });
  return {
    add: async (task, { taskId, sample, artifacts }, result) => {
      const output = artifacts.get("verifier/test-stdout.txt");
      const log = output === undefined ? null : Buffer.from(output).toString("utf8");
      const own = tb1Result({ task, taskId: taskId ?? "", sample, samples, runId: run.id, result, log });
      done.set(own.trial_name, own);
      await writeTb1Trial(runOf(null), own, log);
    },
    end: async () => {
      if (done.size === 0) return null;
      const finished = runOf(new Date().toISOString());
      await writeTb1Run(finished, [...done.values()]);
      return finished.folder;
    },
  };
}
