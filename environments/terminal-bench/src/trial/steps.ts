import type { ManifestEntry } from "../artifacts/plan.ts";
import { isSamePolicy } from "../network/policy.ts";
import type { TrialAgent } from "./agents.ts";
import { collectAgentLogs, collectArtifacts, runCollectHooks, type Services } from "./collect.ts";
import { TrialFailure } from "./failure.ts";
import type { OutputFolder } from "./folder.ts";
import { type HealthcheckTools, waitUntilHealthy } from "./healthcheck.ts";
import type { StepPlan } from "./plan.ts";
import type { TrialSandbox } from "./sandbox.ts";
import { quoted } from "./shell.ts";
import { attemptIn, type MainOptions, workingDirectory } from "./start.ts";

/** Puts a step's files into the working directory, runs its `setup.sh`, and waits for its healthcheck. */
export async function prepareStep(
  sandbox: TrialSandbox,
  plan: StepPlan,
  options: MainOptions,
  tools: Omit<HealthcheckTools, "attempt">,
): Promise<void> {
  if (plan.workdirFolder !== null) {
    const workdir = await workingDirectory(sandbox, options, plan.agent.user);
    await sandbox.upload(plan.workdirFolder, workdir);
    if (plan.hasSetup) await runSetup(sandbox, plan, options, `${workdir}/setup.sh`);
  }
  if (plan.healthcheck !== null) await waitUntilHealthy(plan.healthcheck, { ...tools, attempt: attemptIn(sandbox, options) });
}

async function runSetup(sandbox: TrialSandbox, plan: StepPlan, options: MainOptions, script: string): Promise<void> {
  const { exitCode, output } = await sandbox.exec(`bash ${quoted(script)}`, { ...options, user: plan.agent.user });
  if (exitCode !== 0)
    throw new TrialFailure("StepSetupError", `setup.sh of the step '${plan.name}' failed with ${exitCode}: ${output.trim().slice(-400)}`);
}

/** Runs the agent under its network policy. Afterwards its commands have ended and the baseline applies again. */
export async function runAgent(
  sandbox: TrialSandbox,
  agent: TrialAgent,
  plan: StepPlan,
  options: MainOptions,
  output: OutputFolder,
): Promise<void> {
  const { network } = plan;
  const isSwitched = !isSamePolicy(network.agent, network.baseline);
  if (isSwitched) await sandbox.setNetwork(network.agent);
  try {
    const timeoutMs = plan.agent.timeoutSec === null ? undefined : plan.agent.timeoutSec * 1000;
    await agent.run({ sandbox, plan, options, output, timeoutMs });
  } finally {
    await sandbox.endProcesses();
    if (isSwitched) await sandbox.setNetwork(network.baseline);
  }
}

/** Copies logs and artifacts out of the sandbox, before the verifier runs. */
export async function collect(
  sandbox: TrialSandbox,
  plan: StepPlan,
  services: Services,
  output: OutputFolder,
): Promise<readonly ManifestEntry[]> {
  await collectAgentLogs(sandbox, output).catch(() => null);
  await runCollectHooks(plan.collect, services);
  return collectArtifacts(plan.artifacts, services, output);
}
