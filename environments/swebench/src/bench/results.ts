import type { ResultsOptions } from "@aenv/kit";
import { openDataset } from "../data/folder.ts";
import { ARTIFACTS } from "../runs/paths.ts";
import { byInstance, type Prediction } from "../runs/predictions.ts";
import { predictionOf, RunFiles, summaryOf } from "./files.ts";

interface FinishedEpisode {
  readonly taskId: string | null;
  readonly sample: number;
  readonly outcome: { readonly kind: string };
  readonly artifacts: ReadonlyMap<string, Uint8Array>;
  readonly prediction: { readonly model: string; readonly arguments: Readonly<Record<string, unknown>> | null } | null;
}

/** Writes the files of the reference: a folder per instance, predictions, and the run report. */
export async function results({ dataFolder, folder, run, taskIds }: ResultsOptions) {
  const dataset = await openDataset(dataFolder);
  const samples = new Map<number, Map<string, Prediction>>();
  const filesOf = (sample: number) => new RunFiles(folder, RunFiles.idOf(run.id, sample));
  return {
    /** An episode without a score has no prediction, so its instance is incomplete. */
    episode: async ({ taskId, sample, outcome, artifacts, prediction }: FinishedEpisode): Promise<void> => {
      if (taskId === null || outcome.kind !== "scored") return;
      const model = prediction?.model ?? run.model ?? run.agent;
      const made = predictionOf(taskId, model, patchOf(prediction, artifacts.get("patch.diff")));
      const known = samples.get(sample) ?? new Map<string, Prediction>();
      samples.set(sample, known.set(taskId, made));
      for (const name of ARTIFACTS) {
        const bytes = artifacts.get(name);
        if (bytes !== undefined) filesOf(sample).run.keepFile(model, taskId, name, bytes);
      }
    },
    end: async () => {
      const reports = [...samples]
        .sort(([one], [other]) => one - other)
        .flatMap(([sample, made]) => filesOf(sample).write(dataset, taskIds, inOrder(made, taskIds), run.startedAt) ?? []);
      return { summary: summaryOf(reports) };
    },
  };
}

/** Episodes end in any order; the files are the same for the same episodes. */
function inOrder(predictions: ReadonlyMap<string, Prediction>, taskIds: readonly string[]): Map<string, Prediction> {
  const made = taskIds.map((id) => predictions.get(id)).filter((one) => one !== undefined);
  return byInstance(made);
}

/** The patch that was graded, or the one that the episode has kept. */
function patchOf(prediction: FinishedEpisode["prediction"], kept: Uint8Array | undefined): string {
  const given = prediction?.arguments?.model_patch;
  if (typeof given === "string") return given;
  return kept === undefined ? "" : Buffer.from(kept).toString("utf8");
}
