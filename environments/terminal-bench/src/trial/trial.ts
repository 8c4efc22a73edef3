import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { ManifestEntry } from "../artifacts/plan.ts";
import { isSamePolicy } from "../network/policy.ts";
import { type StepOutcome, stopsAfter, trialRewards } from "../steps/stop.ts";
import type { EnvironmentConfig } from "../task/config/environment.ts";
import type { Task } from "../task/model.ts";
import type { TrialAgent } from "./agents.ts";
import type { Services } from "./collect.ts";
import { TrialFailure } from "./failure.ts";
import { createOutput, type OutputFolder, removeIfEmpty } from "./folder.ts";
import type { HealthcheckTools } from "./healthcheck.ts";
import { planTask, type RunSettings, type StepPlan } from "./plan.ts";
import type { TrialSandbox } from "./sandbox.ts";
import { keepBakedTests, type MainOptions, mainOptions, prepareSandbox } from "./start.ts";
import { collect, prepareStep, runAgent } from "./steps.ts";
import { type CollectedArtifact, type Verification, type VerifySettings, verifySeparate, verifyShared } from "./verify.ts";

/** Starts the sandboxes of a trial. */
export interface Sandboxes {
  readonly startAgent: (task: Task) => Promise<TrialSandbox>;
  /** The environment of a separate verifier, built from a folder with a Dockerfile unless its configuration names an image. */
  readonly startVerifier: (config: EnvironmentConfig, contextFolder: string) => Promise<TrialSandbox>;
  /** Other services of a compose task. */
  readonly service?: (name: string) => TrialSandbox | null;
}

export interface TrialSettings extends RunSettings, VerifySettings {
  readonly verify: boolean;
  readonly clock: Omit<HealthcheckTools, "attempt">;
}

export interface Interval {
  readonly startedAt: number;
  readonly finishedAt: number;
}

export interface StepReport {
  readonly name: string | null;
  readonly agentExecution: Interval | null;
  readonly verifierExecution: Interval | null;
  readonly verification: Verification | null;
  readonly failure: Error | null;
  readonly manifest: readonly ManifestEntry[];
}

export interface TrialReport {
  readonly environmentSetup: Interval | null;
  readonly steps: readonly StepReport[];
  readonly rewards: Readonly<Record<string, number>> | null;
  readonly integers: readonly string[];
  /** Of the trial itself. Failures of steps are in their reports. */
  readonly failure: Error | null;
}

/** Failures of an agent after which its work is still verified. */
const VERIFIED_FAILURES = new Set(["AgentTimeoutError", "NonZeroAgentExitCodeError"]);

/** Runs one attempt of an agent on a task: start, agent, artifacts, verifier; once, or once for each step. */
export async function runTrial(
  task: Task,
  agent: TrialAgent,
  sandboxes: Sandboxes,
  folder: string,
  settings: TrialSettings,
): Promise<TrialReport> {
  const options = mainOptions(task, settings, settings.host);
  const steps: StepReport[] = [];
  const startedAt = settings.clock.now();
  let environmentSetup: Interval | null = null;
  let failure: Error | null = null;
  let trial: Trial | null = null;
  try {
    const sandbox = await sandboxes.startAgent(task);
    trial = { task, agent, sandboxes, sandbox, folder, settings, options, bakedTests: null, isStopped: false };
    await prepareSandbox(task, sandbox, options, settings.clock);
    trial = { ...trial, bakedTests: await keepBakedTests(sandbox) };
    environmentSetup = { startedAt, finishedAt: settings.clock.now() };
    await runSteps(trial, steps);
  } catch (error) {
    failure = error as Error;
  }
  if (trial !== null) failure ??= await stopTrial(trial);
  // A task without steps has one report, whose failure is the trial's.
  if (task.steps.length === 0) failure ??= steps[0]?.failure ?? null;
  const rewards =
    task.steps.length === 0
      ? (steps[0]?.verification?.rewards ?? null)
      : trialRewards(steps.map(outcomeOf), task.config.multi_step_reward_strategy);
  const integers = task.steps.length === 0 ? (steps[0]?.verification?.integers ?? []) : [];
  return { environmentSetup, steps, rewards, integers, failure };
}

interface Trial {
  readonly task: Task;
  readonly agent: TrialAgent;
  readonly sandboxes: Sandboxes;
  readonly sandbox: TrialSandbox;
  readonly folder: string;
  readonly settings: TrialSettings;
  readonly options: MainOptions;
  readonly bakedTests: string | null;
  isStopped: boolean;
}

async function runSteps(trial: Trial, reports: StepReport[]): Promise<void> {
  const plans = planTask(trial.task, trial.settings);
  for (const [i, plan] of plans.entries()) {
    const report = await runStep(trial, plan, i === plans.length - 1);
    reports.push(report);
    if (stopsAfter(outcomeOf(report), plan.minReward, trial.settings.verify)) break;
  }
}

async function runStep(trial: Trial, plan: StepPlan, isLast: boolean): Promise<StepReport> {
  const { sandbox, settings, options } = trial;
  const output = await createOutput(trial.folder, plan.name);
  const report = { name: plan.name, agentExecution: null, verifierExecution: null, verification: null, failure: null, manifest: [] };
  if (plan.name !== null) {
    const failure = await failureOf(() => resetAgentLogs(sandbox).then(() => prepareStep(sandbox, plan, options, settings.clock)));
    if (failure !== null) return { ...report, failure };
  }
  const agentStarted = settings.clock.now();
  const agentFailure = await failureOf(() => runAgent(sandbox, trial.agent, plan, options, output));
  const agentExecution = { startedAt: agentStarted, finishedAt: settings.clock.now() };
  const services: Services = (name) => (name === "main" ? sandbox : (trial.sandboxes.service?.(name) ?? null));
  const manifest = await collect(sandbox, plan, services, output);
  const played = { ...report, agentExecution, manifest, failure: agentFailure };
  // In a task without steps, only these two failures of an agent are verified.
  const isVerified =
    agentFailure === null || plan.name !== null || (agentFailure instanceof TrialFailure && VERIFIED_FAILURES.has(agentFailure.type));
  if (!settings.verify || !isVerified) return played;
  const verifierStarted = settings.clock.now();
  let verification: Verification | null = null;
  const verifierFailure = await failureOf(async () => {
    verification = await verify(trial, plan, manifest, output, isLast);
  });
  const verifierExecution = { startedAt: verifierStarted, finishedAt: settings.clock.now() };
  // Only the first failure is kept.
  return { ...played, verifierExecution, verification, failure: agentFailure ?? verifierFailure };
}

/** Verifies a pass in the agent's sandbox or in a new one, under the verifier's network policy. */
async function verify(
  trial: Trial,
  plan: StepPlan,
  manifest: readonly ManifestEntry[],
  output: OutputFolder,
  isLast: boolean,
): Promise<Verification> {
  const { settings, sandboxes } = trial;
  const { verifier, network } = plan;
  if (verifier.environment === null) {
    return withNetwork(trial.sandbox, plan, () => verifyShared(trial.sandbox, verifier, trial.bakedTests, trial.options, output, settings));
  }
  if (isLast) await stopSandbox(trial);
  const sandbox = await sandboxes.startVerifier(verifier.environment, verifier.contextFolder);
  try {
    if (!isSamePolicy(network.verifier, network.verifierBaseline)) await sandbox.setNetwork(network.verifier);
    const options = { cwd: verifier.environment.workdir, env: verifier.environment.env };
    return await verifySeparate(sandbox, verifier, collected(plan, manifest, output), options, output, settings);
  } finally {
    await sandbox.stop();
  }
}

async function withNetwork<T>(sandbox: TrialSandbox, { network }: StepPlan, run: () => Promise<T>): Promise<T> {
  if (isSamePolicy(network.verifier, network.verifierBaseline)) return run();
  await sandbox.setNetwork(network.verifier);
  try {
    return await run();
  } finally {
    await sandbox.setNetwork(network.verifierBaseline);
  }
}

/** The artifacts that were collected, with their paths in the agent's container. */
function collected(plan: StepPlan, manifest: readonly ManifestEntry[], output: OutputFolder): CollectedArtifact[] {
  return manifest.flatMap((entry, i) => {
    const artifact = plan.artifacts[i];
    if (artifact === undefined || entry.status !== "ok") return [];
    return [{ path: artifact.source.replace(/(?<=.)\/+$/, ""), hostPath: join(output.artifacts, artifact.hostPath), type: entry.type }];
  });
}

async function resetAgentLogs(sandbox: TrialSandbox): Promise<void> {
  await sandbox.exec("rm -rf /logs/agent && mkdir -p /logs/agent && chmod 777 /logs/agent", { user: "root", cwd: "/" });
}

async function stopSandbox(trial: Trial): Promise<void> {
  if (trial.isStopped) return;
  trial.isStopped = true;
  await trial.sandbox.stop();
}

/** Cleans up; answers what failed. */
async function stopTrial(trial: Trial): Promise<Error | null> {
  if (trial.bakedTests !== null) await rm(trial.bakedTests, { recursive: true, force: true });
  for (const name of ["agent", "verifier", "artifacts"]) if (trial.task.steps.length > 0) await removeIfEmpty(join(trial.folder, name));
  return failureOf(() => stopSandbox(trial));
}

function outcomeOf({ verification, failure }: StepReport): StepOutcome {
  return { rewards: verification?.rewards ?? null, isVerified: verification !== null, hasException: failure !== null };
}

async function failureOf(run: () => Promise<unknown>): Promise<Error | null> {
  try {
    await run();
    return null;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
