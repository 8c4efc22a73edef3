import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Environment } from "@aenv/sdk";
import { sweExamples } from "@aenv/testing";
import { loadDataset } from "../../dataset/load.ts";
import { gradePatch } from "../../evaluate/evaluate.ts";
import { patchOf, readPredictions } from "../../runs/predictions.ts";
import { makeSpec } from "../../spec/spec.ts";
import { instanceSandbox } from "./instance-sandbox.ts";
import type { World } from "./world.ts";

type Results = Readonly<Record<string, string>>;

/** Results by the kind of the predictions and the id of the instance. */
export const expectedResults: Readonly<Record<string, Results>> = JSON.parse(
  readFileSync(join(sweExamples, "predictions/expected.json"), "utf8"),
);

/** Grades the predictions of a kind with the library alone, each in a new sandbox. */
export async function gradePredictions(world: World, kind: string): Promise<Results> {
  const predictions = readPredictions(readFileSync(join(sweExamples, "predictions", `${kind}.jsonl`), "utf8"), "jsonl");
  const results = predictions.map(async (prediction) => {
    const { instanceId } = prediction;
    return [instanceId, await resultOf(world, instanceId, patchOf(prediction))] as const;
  });
  return Object.fromEntries(await Promise.all(results));
}

async function resultOf(world: World, task: string, patch: string | null): Promise<string> {
  if (patch === null || patch === "") return "empty";
  const [row = new Map()] = await loadDataset(sweExamples, { instanceIds: [task] });
  await using env = await Environment.create(world.ref, { systemUrl: world.platform.controlUrl, task });
  const { grade, error } = await gradePatch({ sandbox: instanceSandbox(env), spec: makeSpec(row), patch, timeoutSeconds: 120 });
  if (grade === null) return error === null ? "neither a grade nor an error" : "error";
  return grade.report.resolved === (grade.resolution === "RESOLVED_FULL") ? String(grade.resolution) : "a wrong report";
}
