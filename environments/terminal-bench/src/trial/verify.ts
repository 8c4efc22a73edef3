import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { isResolved, parseTestLog, plainLog } from "../tb1/parsers.ts";
import { type HostVariables, resolveTemplates } from "../templates/template.ts";
import { type Rewards, readRewards } from "../verifier/rewards.ts";
import { TrialFailure } from "./failure.ts";
import { type OutputFolder, writeFiles } from "./folder.ts";
import type { VerifierPlan } from "./plan/plan.ts";
import type { SandboxFile, TrialSandbox } from "./sandbox.ts";
import { freshDirectory, quoted, realDirectory } from "./shell.ts";
import { keepBakedTests, type MainOptions } from "./start.ts";
import { areTestsChanged, uploadTests } from "./tests.ts";

export interface VerifySettings {
  readonly host: HostVariables;
  /** A change of test files while they run is a failure; otherwise it is only recorded. */
  readonly isStrict: boolean;
  /** What decides a task of Terminal-Bench 1. */
  readonly tb1Reward: "parser" | "exit_code";
}

export interface Verification extends Rewards {
  readonly isTampered: boolean;
  /** Of Terminal-Bench 1: by both rules, and the share of passed tests. */
  readonly tb1: { readonly byParser: number | null; readonly byExitCode: number; readonly score: number | null } | null;
}

/** Verifies in the agent's sandbox: everything that the agent could have prepared is removed first. */
export async function verifyShared(
  sandbox: TrialSandbox,
  plan: VerifierPlan,
  bakedTests: string | null,
  options: MainOptions,
  output: OutputFolder,
  settings: VerifySettings,
): Promise<Verification> {
  // A user who is not root must be able to write the log and the reward.
  await clearForVerifier(sandbox, plan.user === "root" || plan.user === 0 ? "755" : "777");
  const hashes = await uploadTests(sandbox, plan, bakedTests);
  // Neither the tests nor what they wrote is there at the next step of the agent.
  const removeTests = () => sandbox.exec(`rm -rf /tests; ${freshDirectory("/logs/verifier", "777")}`, { user: "root", cwd: "/" });
  try {
    const verification = await runTests(sandbox, plan, options, output, settings);
    const isTampered = await areTestsChanged(sandbox, hashes);
    if (isTampered && settings.isStrict) throw new TrialFailure("TestsTamperedError", "files in /tests changed while the tests ran");
    await removeTests();
    return { ...verification, isTampered };
  } catch (error) {
    // Where the agent has used up all processes, no command can be run, and the first failure is the one that counts.
    await removeTests().catch(() => {});
    throw error;
  }
}

/** Verifies in a sandbox of its own, which sees only the artifacts. Its image contains the tests, unless it is the agent's. */
export async function verifySeparate(
  sandbox: TrialSandbox,
  plan: VerifierPlan,
  artifacts: readonly CollectedArtifact[],
  options: MainOptions,
  output: OutputFolder,
  settings: VerifySettings,
): Promise<Verification> {
  await sandbox.exec(`${realDirectory("/logs")} && ${freshDirectory("/logs/verifier", "777")}`, { user: "root", cwd: "/" });
  for (const artifact of artifacts) await placeArtifact(sandbox, artifact);
  if (plan.environment?.hasTests === false) return verifyUploaded(sandbox, plan, options, output, settings);
  const { exitCode } = await sandbox.exec("[ -f /tests/test.sh ] && chmod +x /tests/test.sh", { user: "root", cwd: "/" });
  if (exitCode !== 0) {
    throw new TrialFailure(
      "AddTestsDirError",
      "the verifier's image has no /tests/test.sh: copy it in tests/Dockerfile, or use an image that has it",
    );
  }
  return { ...(await runTests(sandbox, plan, options, output, settings)), isTampered: false };
}

async function verifyUploaded(
  sandbox: TrialSandbox,
  plan: VerifierPlan,
  options: MainOptions,
  output: OutputFolder,
  settings: VerifySettings,
): Promise<Verification> {
  const bakedTests = await keepBakedTests(sandbox);
  try {
    await uploadTests(sandbox, plan, bakedTests);
    return { ...(await runTests(sandbox, plan, options, output, settings)), isTampered: false };
  } finally {
    if (bakedTests !== null) await rm(bakedTests, { recursive: true, force: true });
  }
}

/** Something that was collected: a file or a directory of the host, and its path in the agent's container. */
export interface CollectedArtifact {
  readonly path: string;
  readonly hostPath: string;
  readonly type: "file" | "directory";
}

async function placeArtifact(sandbox: TrialSandbox, { path, hostPath, type }: CollectedArtifact): Promise<void> {
  const target = type === "directory" ? path : posix.dirname(path);
  const clear = type === "directory" ? `rm -rf ${quoted(path)} && ` : "";
  await sandbox.exec(`${clear}mkdir -p ${quoted(target)}`, { user: "root", cwd: "/" });
  if (type === "directory") return sandbox.upload(hostPath, target);
  const folder = await mkdtemp(join(tmpdir(), "artifact-"));
  try {
    await cp(hostPath, join(folder, posix.basename(path)));
    await sandbox.upload(folder, target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Removes what is left of the agent at the verifier's paths, also links that it put there. */
async function clearForVerifier(sandbox: TrialSandbox, mode: string): Promise<void> {
  const steps = [realDirectory("/logs"), freshDirectory("/logs/verifier", mode), "rm -rf /solution /oracle"];
  const { exitCode, output } = await sandbox.exec(steps.join(" && "), { user: "root", cwd: "/" });
  if (exitCode !== 0) throw new TrialFailure("AddTestsDirError", `/logs/verifier could not be cleared: ${output.trim()}`);
}

async function runTests(
  sandbox: TrialSandbox,
  plan: VerifierPlan,
  options: MainOptions,
  output: OutputFolder,
  settings: VerifySettings,
): Promise<Omit<Verification, "isTampered">> {
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
 * By a signal, which shells report as such a number, or with 254 because no process could be started. Only what is in the sandbox can have
 * sent the signal: a command that was ended from outside has thrown.
 */
async function isKilled(sandbox: TrialSandbox, exitCode: number | null): Promise<boolean> {
  if (exitCode === 254) return sandbox.hasReachedProcessLimit();
  return exitCode === null || (exitCode > 128 && exitCode <= 128 + 64);
}

/** The verifier's files, without those that are older than the test script's start. */
async function downloadVerifierFiles(sandbox: TrialSandbox, startedAt: number): Promise<readonly SandboxFile[]> {
  try {
    return (await sandbox.download("/logs/verifier")).filter(({ modifiedSec }) => Math.floor(modifiedSec) >= startedAt);
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
