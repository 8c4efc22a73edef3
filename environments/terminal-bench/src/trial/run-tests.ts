import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isResolved, parseTestLog, plainLog } from "../tb1/parsers.ts";
import { type HostVariables, resolveTemplates } from "../templates/template.ts";
import { type Rewards, readRewards } from "../verifier/rewards.ts";
import { TrialFailure } from "./failure.ts";
import { readFiles, type SandboxFile } from "./files.ts";
import { type OutputFolder, writeFiles } from "./folder.ts";
import type { VerifierPlan } from "./plan/plan.ts";
import type { TrialSandbox } from "./sandbox.ts";
import type { MainOptions } from "./start.ts";

export interface VerifySettings {
  readonly host: HostVariables;
  /** A change of test files while they run is a failure; otherwise it is only recorded. */
  readonly isStrict: boolean;
  /** What decides a task of Terminal-Bench 1. */
  readonly tb1Reward: "parser" | "exit_code";
}

export interface Verification extends Rewards {
  readonly isTampered: boolean;
  /** The results of Terminal-Bench 1: by both rules, and the share of passed tests. */
  readonly tb1: { readonly byParser: number | null; readonly byExitCode: number; readonly score: number | null } | null;
}

/** What the tests of a step run with. */
export interface TestRun {
  readonly sandbox: TrialSandbox;
  readonly plan: VerifierPlan;
  readonly options: MainOptions;
  readonly output: OutputFolder;
  readonly settings: VerifySettings;
}

/** Runs the test script, and reads the rewards that it has written. */
export async function runTests({ sandbox, plan, options, output, settings }: TestRun): Promise<Omit<Verification, "isTampered">> {
  const startedAt = Number((await sandbox.exec("date +%s", { user: "root", cwd: "/" })).output.trim());
  const env = { ...options.env, ...resolveTemplates(plan.env, settings.host) };
  const result = await sandbox.exec(plan.command, { cwd: options.cwd, env, user: plan.user, timeoutMs: plan.timeoutSec * 1000 });
  await sandbox.endProcesses();
  const files = await downloadVerifierFiles(sandbox, startedAt);
  await writeFiles(output.verifier, files);
  if (plan.parser !== null) await writeFile(join(output.verifier, "test-stdout.txt"), plainLog(result.output));
  if (result.isTimedOut) throw new TrialFailure("VerifierTimeoutError", `the tests took longer than ${plan.timeoutSec} seconds`);
  try {
    return plan.parser === null ? rewardsOf(files) : tb1Rewards(plan, plainLog(result.output), result.exitCode, settings.tb1Reward);
  } catch (error) {
    if (!(await isKilled(sandbox, result.exitCode))) throw error;
    throw new TrialFailure("TestsKilledError", "the tests were killed before they wrote a reward", { cause: error });
  }
}

/**
 * Whether the command ended by a signal, which shells report as such a number, or with 254 because no process could be started. Only a
 * process of the sandbox can have sent the signal: a command that was ended from outside has thrown.
 */
async function isKilled(sandbox: TrialSandbox, exitCode: number | null): Promise<boolean> {
  if (exitCode === 254) return sandbox.hasReachedProcessLimit();
  return exitCode === null || (exitCode > 128 && exitCode <= 128 + 64);
}

/** The verifier's files, without those that are older than the test script's start. */
async function downloadVerifierFiles(sandbox: TrialSandbox, startedAt: number): Promise<readonly SandboxFile[]> {
  try {
    return (await readFiles(sandbox, "/logs/verifier")).filter(({ modifiedSec }) => Math.floor(modifiedSec) >= startedAt);
  } catch (error) {
    throw new TrialFailure("DownloadVerifierDirError", "/logs/verifier could not be read", { cause: error });
  }
}

function rewardsOf(files: readonly SandboxFile[]): Omit<Verification, "isTampered"> {
  const content = (name: string): string | null => {
    const file = files.find(({ path }) => path === name);
    return file === undefined ? null : Buffer.from(file.content).toString("utf8");
  };
  const outcome = readRewards({ json: content("reward.json"), text: content("reward.txt") });
  if (!outcome.ok) throw new TrialFailure(outcome.error, outcome.message);
  return { rewards: outcome.rewards, integers: outcome.integers, tb1: null };
}

/** A log that cannot be parsed, or has no tests, is not a reward of 0: the verification failed. */
function tb1Rewards(
  plan: VerifierPlan,
  log: string,
  exitCode: number | null,
  rule: VerifySettings["tb1Reward"],
): Omit<Verification, "isTampered"> {
  const results = plan.parser === null ? null : parseTestLog(plan.parser, log);
  const passed = results === null ? 0 : [...results.values()].filter((result) => result === "passed").length;
  const tb1 = {
    byParser: results === null || results.size === 0 ? null : Number(isResolved(results)),
    byExitCode: Number(exitCode === 0),
    score: results === null || results.size === 0 ? null : passed / results.size,
  };
  const reward = rule === "parser" ? tb1.byParser : tb1.byExitCode;
  if (reward === null) throw new TrialFailure("VerifierOutputParseError", "the output of run-tests.sh has no results of tests");
  return { rewards: { reward }, integers: [], tb1 };
}
