import { decodeLenient, decodeStrict, PyError, strip } from "@aenv/benchmark";
import { type Grade, gradeOutput } from "../grading/report.ts";
import { type Asset, listAssets } from "../spec/assets.ts";
import { insertBeforeTests } from "../spec/eval-script.ts";
import type { EvalSpec } from "../spec/spec.ts";
import { applyPatch } from "./apply.ts";
import { REPOSITORY } from "./attempts.ts";
import { EvaluationError } from "./error.ts";
import { InstanceLog } from "./log.ts";
import type { EvalSandbox } from "./sandbox.ts";

const SCRIPT_FILE = "/eval.sh";
const DIFF = ["git", "-c", "core.fileMode=false", "diff"] as const;

export interface RunTestsOptions {
  readonly sandbox: EvalSandbox;
  readonly spec: EvalSpec;
  /** Time limit of the tests; null is no limit. */
  readonly timeoutSeconds?: number | null;
  /** Returns a file that the tests need, or null if it cannot be had: the tests then run without it. */
  readonly fetchAsset?: (asset: Asset) => Promise<Uint8Array | null>;
}

export interface GradePatchOptions extends RunTestsOptions {
  /** Null leaves the repository as it is, and the instance ungraded. */
  readonly patch: string | null;
  readonly now?: () => Date;
}

export interface TestRun {
  readonly script: string;
  readonly output: string;
  readonly isTimedOut: boolean;
}

/** What is kept of an instance. A null is a file that is not written. */
export interface Evaluation {
  /** `eval.sh` */
  readonly script: string | null;
  /** `test_output.txt` */
  readonly output: string | null;
  /** `report.json`; without one, the instance counts as an error. */
  readonly grade: Grade | null;
  /** Why there is no grade. */
  readonly error: string | null;
  /** `run_instance.log` */
  readonly log: string;
}

export const DEFAULT_TIMEOUT_SECONDS = 1800;

/**
 * Applies a patch in a new sandbox, runs the tests and grades their output. Failures of the patch and of the tests are results;
 * failures of the sandbox are thrown.
 */
export async function gradePatch(options: GradePatchOptions): Promise<Evaluation> {
  const { sandbox, spec, patch, timeoutSeconds = DEFAULT_TIMEOUT_SECONDS } = options;
  const log = new InstanceLog(options.now ?? (() => new Date()));
  const kept: { script: string | null; output: string | null } = { script: null, output: null };
  try {
    await applyPatch(sandbox, patch ?? "", log);
    const before = await readDiff(sandbox);
    log.info(`Git diff before:\n${before}`);
    const { script, output, isTimedOut } = await runTests(options, log);
    Object.assign(kept, { script, output });
    if (isTimedOut) throw new EvaluationError(`Test timed out after ${timeoutSeconds} seconds.`);
    const after = await readDiff(sandbox);
    log.info(`Git diff after:\n${after}`);
    if (after !== before) log.info("Git diff changed after running eval script");
    const grade = gradeOutput(spec, patch, new TextEncoder().encode(output));
    log.info(`Result for ${spec.instanceId}: resolved: ${grade.report.resolved}`);
    return { ...kept, grade, error: null, log: log.text };
  } catch (error) {
    if (!(error instanceof EvaluationError) && !(error instanceof PyError)) throw error;
    log.error(`Error in evaluation for ${spec.instanceId}: ${error.message}`);
    return { ...kept, grade: null, error: error.message, log: log.text };
  }
}

async function readDiff(sandbox: EvalSandbox): Promise<string> {
  const { output } = await sandbox.exec(DIFF, { cwd: REPOSITORY });
  return strip(decodeStrict(output, "the output of 'git diff'"));
}

/** The commands that put the files in their place. */
async function storeAssets({ sandbox, spec, fetchAsset }: RunTestsOptions, log: InstanceLog): Promise<string[]> {
  const commands: string[] = [];
  for (const asset of listAssets(spec.imageAssets)) {
    const bytes = fetchAsset === undefined ? null : await fetchAsset(asset);
    if (bytes === null) {
      log.warn(`the file ${asset.path} is missing: the tests run without it`);
      continue;
    }
    await sandbox.write(asset.storedAt, bytes);
    commands.push(asset.command);
  }
  return commands;
}

/** Runs the tests of an instance on the repository as it is. */
export async function runTests(options: RunTestsOptions, log: InstanceLog): Promise<TestRun> {
  const { sandbox, spec, timeoutSeconds = DEFAULT_TIMEOUT_SECONDS } = options;
  const script = insertBeforeTests(spec.evalScript, await storeAssets(options, log));
  await sandbox.write(SCRIPT_FILE, new TextEncoder().encode(script));
  const limit = timeoutSeconds === null ? {} : { timeoutMs: timeoutSeconds * 1000 };
  // The exit code of the script is that of its last command, the reset: it says nothing.
  const { output, exitCode, isOutOfMemory = false } = await sandbox.exec(["/bin/bash", SCRIPT_FILE], limit);
  if (isOutOfMemory) log.warn("the memory limit of the sandbox ended the tests");
  const text = decodeLenient(output);
  const isTimedOut = exitCode === null;
  return { script, output: isTimedOut ? `${text}\n\nTimeout error: ${timeoutSeconds} seconds exceeded.` : text, isTimedOut };
}
