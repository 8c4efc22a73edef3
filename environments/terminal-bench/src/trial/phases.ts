import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { ManifestEntry } from "../artifacts/plan.ts";
import { isSamePolicy, type NetworkPolicy } from "../network/policy.ts";
import type { Task } from "../task/model.ts";
import { verifierTask } from "../verifier/environment.ts";
import type { Services } from "./collect.ts";
import { TrialFailure } from "./failure.ts";
import { createOutput, type OutputFolder, removeIfEmpty } from "./folder.ts";
import type { HealthcheckTools } from "./healthcheck.ts";
import type { RunSettings, StepPlan } from "./plan.ts";
import type { Interval, StepReport } from "./report.ts";
import type { TrialSandbox } from "./sandbox.ts";
import { keepBakedTests, type MainOptions, mainOptions, prepareSandbox } from "./start.ts";
import { collect, prepareStep } from "./steps.ts";
import { type CollectedArtifact, type Verification, type VerifySettings, verifySeparate, verifyShared } from "./verify.ts";

/** Starts the sandboxes of a trial. */
export interface Sandboxes {
  readonly startAgent: (task: Task) => Promise<TrialSandbox>;
  /** The environment of a separate verifier, as a task, under this policy. */
  readonly startVerifier: (verifier: Task, policy: NetworkPolicy) => Promise<TrialSandbox>;
  /**
   * A new sandbox of the task under this policy, with the files that the agent has changed. `prepare` is called before they are
   * applied. If it is not given, a shared verification runs in the agent's own sandbox.
   */
  readonly startCopy?: (
    agent: TrialSandbox,
    policy: NetworkPolicy,
    prepare: (sandbox: TrialSandbox) => Promise<void>,
  ) => Promise<TrialSandbox>;
  /** Other services of a compose task. */
  readonly service?: (name: string) => TrialSandbox | null;
}

export interface TrialSettings extends RunSettings, VerifySettings {
  readonly verify: boolean;
  readonly clock: Omit<HealthcheckTools, "attempt">;
}

/** A trial whose sandbox has started. */
export interface Trial {
  readonly task: Task;
  readonly sandboxes: Sandboxes;
  readonly sandbox: TrialSandbox;
  readonly folder: string;
  readonly settings: TrialSettings;
  readonly options: MainOptions;
  /** A folder with the tests of the image; null if it has none. */
  readonly bakedTests: string | null;
  isStopped: boolean;
}

/** How the agent ended a step. */
export interface AgentEnd {
  readonly agentExecution: Interval | null;
  readonly failure: Error | null;
}

/** Failures of an agent after which its work is still verified. */
const VERIFIED_FAILURES = new Set(["AgentTimeoutError", "NonZeroAgentExitCodeError"]);

/** Starts the agent's sandbox, and prepares it. */
export async function openTrial(task: Task, sandboxes: Sandboxes, folder: string, settings: TrialSettings): Promise<Trial> {
  const options = mainOptions(task, settings, settings.host);
  const sandbox = await sandboxes.startAgent(task);
  try {
    await prepareSandbox(task, sandbox, options, settings.clock);
    // A verification in a new sandbox finds the tests of the image there.
    const bakedTests = sandboxes.startCopy === undefined ? await keepBakedTests(sandbox) : null;
    return { task, sandboxes, sandbox, folder, settings, options, bakedTests, isStopped: false };
  } catch (error) {
    await sandbox.stop();
    throw error;
  }
}

/** Prepares a step for the agent. A task without steps was prepared by `openTrial`. */
export async function beginStep({ sandbox, options, settings }: Trial, plan: StepPlan): Promise<void> {
  if (plan.name === null) return;
  await sandbox.exec("rm -rf /logs/agent && mkdir -p /logs/agent && chmod 777 /logs/agent", { user: "root", cwd: "/" });
  await prepareStep(sandbox, plan, options, settings.clock);
}

/** Collects what the agent has left, and verifies it. `isLast` ends the agent's sandbox before a verification that does not need it. */
export async function finishStep(trial: Trial, plan: StepPlan, agent: AgentEnd, isLast: boolean): Promise<StepReport> {
  const { sandbox, settings } = trial;
  const output = await createOutput(trial.folder, plan.name);
  const services: Services = (name) => (name === "main" ? sandbox : (trial.sandboxes.service?.(name) ?? null));
  const manifest = await collect(sandbox, plan, services, output);
  const report = { name: plan.name, ...agent, manifest, verifierExecution: null, verification: null };
  // In a task without steps, only these two failures of an agent are verified.
  const isVerified =
    agent.failure === null || plan.name !== null || (agent.failure instanceof TrialFailure && VERIFIED_FAILURES.has(agent.failure.type));
  if (!settings.verify || !isVerified) return report;
  const startedAt = settings.clock.now();
  let verification: Verification | null = null;
  const verifierFailure = await failureOf(async () => {
    verification = await verify(trial, plan, manifest, output, isLast);
  });
  const verifierExecution = { startedAt, finishedAt: settings.clock.now() };
  // Only the first failure is kept.
  return { ...report, verifierExecution, verification, failure: agent.failure ?? verifierFailure };
}

/** Cleans up, and stops the agent's sandbox. */
export async function closeTrial(trial: Trial): Promise<void> {
  if (trial.bakedTests !== null) await rm(trial.bakedTests, { recursive: true, force: true });
  for (const name of ["agent", "verifier", "artifacts"]) if (trial.task.steps.length > 0) await removeIfEmpty(join(trial.folder, name));
  await stopSandbox(trial);
}

/** Verifies a pass in the agent's sandbox, in a copy of it or in another one, under the verifier's network policy. */
async function verify(
  trial: Trial,
  plan: StepPlan,
  manifest: readonly ManifestEntry[],
  output: OutputFolder,
  isLast: boolean,
): Promise<Verification> {
  const { settings, sandboxes, options } = trial;
  const { verifier, network } = plan;
  if (verifier.environment === null) {
    if (sandboxes.startCopy !== undefined) return verifyCopy(trial, sandboxes.startCopy, plan, output);
    return withNetwork(trial.sandbox, plan, () => verifyShared(trial.sandbox, verifier, trial.bakedTests, options, output, settings));
  }
  if (isLast) await stopSandbox(trial);
  const own = verifierTask(trial.task, verifier.environment);
  const ownOptions = mainOptions(own, settings, settings.host);
  const sandbox = await sandboxes.startVerifier(own, network.verifier);
  try {
    await prepareSandbox(own, sandbox, ownOptions, settings.clock);
    return await verifySeparate(sandbox, verifier, collected(plan, manifest, output), ownOptions, output, settings);
  } finally {
    await sandbox.stop();
  }
}

async function verifyCopy(
  { task, sandbox: agent, settings, options }: Trial,
  startCopy: NonNullable<Sandboxes["startCopy"]>,
  { verifier, network }: StepPlan,
  output: OutputFolder,
): Promise<Verification> {
  let bakedTests: string | null = null;
  try {
    const sandbox = await startCopy(agent, network.verifier, async (fresh) => {
      await prepareSandbox(task, fresh, options, settings.clock);
      bakedTests = await keepBakedTests(fresh);
    });
    try {
      return await verifyShared(sandbox, verifier, bakedTests, options, output, settings);
    } finally {
      await sandbox.stop();
    }
  } finally {
    if (bakedTests !== null) await rm(bakedTests, { recursive: true, force: true });
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

async function stopSandbox(trial: Trial): Promise<void> {
  if (trial.isStopped) return;
  trial.isStopped = true;
  await trial.sandbox.stop();
}

export async function failureOf(run: () => Promise<unknown>): Promise<Error | null> {
  try {
    await run();
    return null;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
