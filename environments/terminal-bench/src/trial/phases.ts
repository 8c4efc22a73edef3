import { rm } from "node:fs/promises";
import type { Task } from "../task/model.ts";
import { verifierTask } from "../verifier/environment.ts";
import { collect, type Services } from "./collect.ts";
import { createOutput, type OutputFolder } from "./folder.ts";
import type { HealthcheckTools } from "./healthcheck.ts";
import { isSamePolicy, type NetworkPolicy } from "./plan/network.ts";
import type { RunSettings, StepPlan } from "./plan/plan.ts";
import type { Interval, StepReport } from "./report.ts";
import type { Verification, VerifySettings } from "./run-tests.ts";
import type { TrialSandbox } from "./sandbox.ts";
import { keepBakedTests, type MainOptions, mainOptions, prepareSandbox, prepareStep } from "./start.ts";
import { type ForeignArtifact, verifySeparate, verifyShared } from "./verify.ts";

/** The sandboxes of a trial. */
export interface Sandboxes {
  /** The agent's, which `startAgent` starts under the policy that the agent has at first. */
  readonly agent: TrialSandbox;
  readonly startAgent: (policy: NetworkPolicy) => Promise<void>;
  /** The environment of a separate verifier, as a task, under this policy. */
  readonly startVerifier: (verifier: Task, policy: NetworkPolicy) => Promise<TrialSandbox>;
  /**
   * A new sandbox of the task under this policy, with the files that the agent has changed. `prepare` is called before they are
   * applied. If it is not given, a shared verification runs in the agent's own sandbox.
   */
  readonly startCopy?: (policy: NetworkPolicy, prepare: (sandbox: TrialSandbox) => Promise<void>) => Promise<TrialSandbox>;
  /** Other services of a compose task. */
  readonly service?: (name: string) => TrialSandbox | null;
}

export interface TrialSettings extends RunSettings, VerifySettings {
  readonly clock: Omit<HealthcheckTools, "attempt">;
}

/** What the phases of a trial work with. */
export interface TrialParts {
  readonly task: Task;
  readonly sandboxes: Sandboxes;
  /** Where the files of the trial are collected. */
  readonly folder: string;
  readonly settings: TrialSettings;
  /** Working directory and variables of the agent's commands. */
  readonly options: MainOptions;
  /** A folder with the tests of the image; null if it has none. */
  readonly bakedTests: string | null;
}

/** Starts the agent's sandbox, and prepares it. Answers the tests of its image, if a verification in it has to put them back. */
export async function startAgent({ task, sandboxes, settings, options }: Omit<TrialParts, "bakedTests">, plan: StepPlan) {
  await sandboxes.startAgent(plan.network.agent);
  await prepareSandbox(task, sandboxes.agent, options, settings.clock);
  // A verification in a new sandbox finds the tests of the image there.
  return sandboxes.startCopy === undefined ? keepBakedTests(sandboxes.agent) : null;
}

/** Prepares a step for the agent. A task without steps was prepared when its sandbox was started. */
export async function beginStep({ sandboxes: { agent }, options, settings }: TrialParts, plan: StepPlan): Promise<void> {
  if (plan.name === null) return;
  await agent.exec("rm -rf /logs/agent && mkdir -p /logs/agent && chmod 777 /logs/agent", { user: "root", cwd: "/" });
  await prepareStep(agent, plan, options, settings.clock);
}

/** Collects what the agent has left, and verifies it. A verification that fails is part of the report. */
export async function finishStep(parts: TrialParts, plan: StepPlan, agentExecution: Interval): Promise<StepReport> {
  const { sandboxes, folder, settings } = parts;
  const output = await createOutput(folder, plan.name);
  const services = servicesOf(sandboxes);
  const manifest = await collect(plan, services, output);
  const startedAt = settings.clock.now();
  const [verification, failure] = await verify(parts, plan, output).then(
    (done) => [done, null] as const,
    (error: unknown) => [null, error instanceof Error ? error : new Error(String(error))] as const,
  );
  const verifierExecution = { startedAt, finishedAt: settings.clock.now() };
  return { name: plan.name, agentExecution, verifierExecution, verification, failure, manifest };
}

function servicesOf({ agent, service }: Sandboxes): Services {
  return (name) => (name === "main" ? agent : (service?.(name) ?? null));
}

/** Verifies a step in the agent's sandbox, in a copy of it or in another one, under the verifier's network policy. */
async function verify(parts: TrialParts, plan: StepPlan, output: OutputFolder): Promise<Verification> {
  const { task, settings, sandboxes, options, bakedTests } = parts;
  const { verifier, network } = plan;
  const run = { plan: verifier, options, output, settings };
  if (verifier.environment === null) {
    if (sandboxes.startCopy !== undefined) return verifyCopy(parts, sandboxes.startCopy, plan, output);
    return withNetwork(sandboxes.agent, plan, () => verifyShared({ ...run, sandbox: sandboxes.agent }, bakedTests));
  }
  const own = verifierTask(task, verifier.environment);
  const ownOptions = mainOptions(own, settings, settings.host);
  const sandbox = await sandboxes.startVerifier(own, network.verifier);
  try {
    await prepareSandbox(own, sandbox, ownOptions, settings.clock);
    return await verifySeparate({ ...run, sandbox, options: ownOptions }, artifactsOf(plan, servicesOf(sandboxes)));
  } finally {
    await sandbox.stop();
  }
}

async function verifyCopy(
  { task, settings, options }: TrialParts,
  startCopy: NonNullable<Sandboxes["startCopy"]>,
  { verifier, network }: StepPlan,
  output: OutputFolder,
): Promise<Verification> {
  let bakedTests: string | null = null;
  try {
    const sandbox = await startCopy(network.verifier, async (fresh) => {
      await prepareSandbox(task, fresh, options, settings.clock);
      bakedTests = await keepBakedTests(fresh);
    });
    try {
      return await verifyShared({ sandbox, plan: verifier, options, output, settings }, bakedTests);
    } finally {
      await sandbox.stop();
    }
  } finally {
    if (bakedTests !== null) await rm(bakedTests, { recursive: true, force: true });
  }
}

async function withNetwork<T>(agent: TrialSandbox, { network }: StepPlan, run: () => Promise<T>): Promise<T> {
  if (isSamePolicy(network.verifier, network.agent)) return run();
  await agent.setNetwork(network.verifier);
  try {
    return await run();
  } finally {
    await agent.setNetwork(network.agent);
  }
}

/** The artifacts of a step, which the sandbox of a separate verifier gets from those in which they are. */
function artifactsOf({ artifacts }: StepPlan, services: Services): ForeignArtifact[] {
  return artifacts.flatMap(({ source, service, exclude, isSkipped }) => {
    const from = services(service ?? "main");
    return isSkipped || from === null ? [] : [{ from, path: source.replace(/(?<=.)\/+$/, ""), exclude }];
  });
}
