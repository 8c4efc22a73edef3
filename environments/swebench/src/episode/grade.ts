import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import type { TaskSandbox, TaskSandboxes } from "@aenv/kit";
import { filesOfPatch } from "../changes/rules.ts";
import { takePatch } from "../changes/take.ts";
import type { Dataset } from "../data/folder.ts";
import type { Row } from "../dataset/row.ts";
import { EvaluationError } from "../evaluate/error.ts";
import { type Evaluation, gradePatch, type RunTestsOptions, runTests } from "../evaluate/evaluate.ts";
import { InstanceLog } from "../evaluate/log.ts";
import { evalSandbox } from "../evaluate/task-sandbox.ts";
import { gradeOutput } from "../grading/report.ts";
import { type EvalSpec, makeSpec } from "../spec/spec.ts";
import { addCanary, type Canary } from "./canary.ts";
import { hasEndedRun, missingAfter } from "./early-end.ts";
import { forgeryOf, signsIn } from "./forgery.ts";
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
  const canary = addCanary(spec, randomUUID().slice(0, 8), String(row.get("test_patch") ?? ""));
  const graded = await run(options, clean, patch, canary?.spec ?? spec, log);
  if (canary === null || !(await isCutShort(options, graded.evaluation, canary))) return await doubt(options, graded, spec, canary, log);
  log.info(`the tests of ${spec.instanceId} end at the first failure, so they are run again without ${canary.test}`);
  await using another = await openClean(options);
  return await doubt(options, await run(options, another, patch, spec, log), spec, null, log);
}

/** Whether the additional test has kept other tests from being run. */
async function isCutShort(options: GradeOptions, evaluation: Evaluation | null, canary: Canary): Promise<boolean> {
  const { output = null, grade = null } = evaluation ?? {};
  if (output === null || grade?.report.resolved !== false) return false;
  const missing = missingAfter(canary, output);
  return missing.length > 0 && hasEndedRun(missing, canary, await controlOutput(options, canary.spec));
}

/** The results, if they are believed. */
async function doubt(options: GradeOptions, graded: Graded, spec: EvalSpec, canary: Canary | null, log: InstanceLog): Promise<Graded> {
  const forgery = await findForgery(options, graded.evaluation, canary);
  return forgery === null ? graded : withoutResults(graded, forgery, spec, log);
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

async function run(options: GradeOptions, sandbox: TaskSandbox, patch: string, spec: EvalSpec, log: InstanceLog): Promise<Graded> {
  const evaluation = await gradePatch({ ...testsOf(options, sandbox, spec), patch });
  return { patch, evaluation, log: log.text + evaluation.log };
}

function testsOf({ dataset, timeoutSeconds }: GradeOptions, sandbox: TaskSandbox, spec: EvalSpec): RunTestsOptions {
  const fetchAsset: RunTestsOptions["fetchAsset"] = async ({ path }) => dataset.readAsset(spec.instanceId, path);
  return { sandbox: evalSandbox(sandbox), spec, timeoutSeconds, fetchAsset };
}

/** Output that is forged is not believed. A line says so, so that a later grading of the stored output does not believe it either. */
function withoutResults({ evaluation, patch }: Graded, error: string, spec: EvalSpec, log: InstanceLog): Graded {
  if (evaluation === null) return { patch, evaluation, log: log.text };
  log.error(`Error in evaluation for ${spec.instanceId}: ${error}`);
  const output = `${evaluation.output}\n${TESTS_ERRORED}: ${error}\n`;
  const grade = gradeOutput(spec, patch, Buffer.from(output));
  return { patch, evaluation: { ...evaluation, output, grade, error }, log: log.text + evaluation.log };
}

/** Why the results are not believed; null if they are. */
async function findForgery(options: GradeOptions, evaluation: Evaluation | null, canary: Canary | null): Promise<string | null> {
  const { script = null, output = null, grade = null } = evaluation ?? {};
  if (script === null || output === null) return null;
  // With markers of its own, a patch can end the output where it likes.
  const markers = forgedMarkers(script, output);
  if (markers.length > 0) return `the output contains markers that are not the script's: ${markers.join(", ")}`;
  const spec = canary?.spec ?? makeSpec(options.row);
  const signs = grade?.report.resolved === true ? signsIn(spec, canary, output) : null;
  return signs === null ? null : forgeryOf(signs, canary, signsIn(spec, canary, await controlOutput(options, spec)));
}

/** The output of the same tests without the patch. */
async function controlOutput(options: GradeOptions, spec: EvalSpec): Promise<string> {
  await using sandbox = await openClean(options);
  const { output, isTimedOut } = await runTests(testsOf(options, sandbox, spec), new InstanceLog(() => new Date()));
  if (isTimedOut) throw new Error(`the tests of ${spec.instanceId} take too long without a patch, so results cannot be compared`);
  return output;
}
