import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import type { TaskSandbox, TaskSandboxes } from "@aenv/kit";
import { filesOfPatch } from "../changes/rules.ts";
import { takePatch } from "../changes/take.ts";
import type { Dataset } from "../data/folder.ts";
import type { Row } from "../dataset/row.ts";
import { EvaluationError } from "../evaluate/error.ts";
import { type Evaluation, gradePatch } from "../evaluate/evaluate.ts";
import { InstanceLog } from "../evaluate/log.ts";
import { evalSandbox } from "../evaluate/task-sandbox.ts";
import { gradeOutput } from "../grading/report.ts";
import { type EvalSpec, makeSpec } from "../spec/spec.ts";
import { addCanary, type Canary, hasFailed } from "./canary.ts";
import { forgedMarkers, TESTS_ERRORED } from "./markers.ts";

const RETRY_MS = 2_000;
const MAX_WAIT_MS = 60 * 60_000;

export interface GradeOptions {
  readonly row: Row;
  readonly dataset: Dataset;
  readonly sandboxes: TaskSandboxes;
  readonly timeoutSeconds: number;
  readonly hasNetwork: boolean;
  readonly signal: AbortSignal;
}

/** A patch and what came of it. The evaluation is null if the patch is empty: it is not run. */
export interface Graded {
  readonly patch: string;
  readonly evaluation: Evaluation | null;
  readonly log: string;
}

/** Grades a patch as the reference does, in a new sandbox. Failures of the platform are thrown. */
export async function gradeAnswer(options: GradeOptions, patch: string): Promise<Graded> {
  if (patch === "") return { patch, evaluation: null, log: "" };
  await using sandbox = await openClean(options);
  // Awaited: the sandbox is closed at the end of this function.
  return await run(options, sandbox, patch, makeSpec(options.row), new InstanceLog(() => new Date()));
}

/** Grades what an agent has left in its sandbox, in a new one from the same image. */
export async function gradeEpisode(options: GradeOptions, agents: TaskSandbox, isStrict: boolean): Promise<Graded> {
  const { row } = options;
  const log = new InstanceLog(() => new Date());
  const filesIn = (column: string) => filesOfPatch(String(row.get(column) ?? ""));
  const rules = { testFiles: filesIn("test_patch"), solutionFiles: filesIn("patch"), isStrict };
  await using clean = await openClean(options);
  let patch: string;
  try {
    patch = await takePatch({ agents, clean, rules, log });
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    log.error(error.message);
    return { patch: "", evaluation: { script: null, output: null, grade: null, error: error.message, log: "" }, log: log.text };
  }
  if (patch === "") return { patch, evaluation: null, log: log.text };
  const spec = makeSpec(row);
  if (!isStrict) return await run(options, clean, patch, spec, log);
  const canary = addCanary(spec, randomUUID().slice(0, 8));
  return withoutForged(await run(options, clean, patch, canary?.spec ?? spec, log), spec, canary, log);
}

/**
 * Without an agent's sandbox, this one is the first of the instance, for which the server may have no memory now: answers wait for each
 * other.
 */
async function openClean({ row, sandboxes, hasNetwork, signal }: GradeOptions): Promise<TaskSandbox> {
  const wanted = { image: makeSpec(row).image, signal, ...(!hasNetwork && { egress: "none" as const }) };
  for (let waitedMs = 0; ; waitedMs += RETRY_MS) {
    try {
      return await sandboxes.open({ ...wanted, name: `tests-${randomUUID().slice(0, 8)}` });
    } catch (error) {
      const isFull = error instanceof Error && "code" in error && error.code === "sandbox.no_capacity";
      if (!isFull || waitedMs >= MAX_WAIT_MS) throw error;
      await setTimeout(RETRY_MS, undefined, { signal });
    }
  }
}

async function run(
  { dataset, timeoutSeconds }: GradeOptions,
  sandbox: TaskSandbox,
  patch: string,
  spec: EvalSpec,
  log: InstanceLog,
): Promise<Graded> {
  const evaluation = await gradePatch({
    sandbox: evalSandbox(sandbox),
    spec,
    patch,
    timeoutSeconds,
    fetchAsset: async ({ path }) => dataset.readAsset(spec.instanceId, path),
  });
  return { patch, evaluation, log: log.text + evaluation.log };
}

/**
 * Output that shows signs of forgery is not believed. A line says so, so that a later grading of the stored output does not believe it
 * either.
 */
function withoutForged(graded: Graded, spec: EvalSpec, canary: Canary | null, log: InstanceLog): Graded {
  const { evaluation, patch } = graded;
  const error = evaluation === null ? null : forgeryIn(evaluation, canary);
  if (evaluation === null || error === null) return graded;
  log.error(`Error in evaluation for ${spec.instanceId}: ${error}`);
  const output = `${evaluation.output}\n${TESTS_ERRORED}: ${error}\n`;
  const grade = gradeOutput(spec, patch, Buffer.from(output));
  return { patch, evaluation: { ...evaluation, output, grade, error }, log: log.text + evaluation.log };
}

/** Markers that the script did not print, with which a patch can end the output where it likes; or a test that must fail and did not. */
function forgeryIn({ script, output, grade }: Evaluation, canary: Canary | null): string | null {
  if (script === null || output === null) return null;
  const forged = forgedMarkers(script, output);
  if (forged.length > 0) return `the output contains markers that are not the script's: ${forged.join(", ")}`;
  if (canary === null || grade?.report.resolved !== true || hasFailed(canary, output)) return null;
  return `the results are not those of the tests: ${canary.test}, which always fails, has not failed`;
}
