import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { composeOf, isComposeTask } from "../compose/of-task.ts";
import type { Task } from "../task/model.ts";
import { type HostVariables, resolveTemplates } from "../templates/template.ts";
import { TrialFailure } from "./failure.ts";
import { readFiles } from "./files.ts";
import { writeFiles } from "./folder.ts";
import { type HealthcheckTools, waitUntilHealthy } from "./healthcheck.ts";
import type { RunSettings, StepPlan } from "./plan/plan.ts";
import type { TrialSandbox } from "./sandbox.ts";
import { quoted, realDirectory } from "./shell.ts";

/** Every exec in the agent's container. */
export interface MainOptions {
  readonly cwd: string | null;
  readonly env: Readonly<Record<string, string>>;
}

/** Working directory and variables of the agent's container. With compose, the variables are only for the compose file. */
export function mainOptions(task: Task, run: RunSettings, host: HostVariables): MainOptions {
  const { config } = task;
  if (isComposeTask(task)) {
    const { environment, cwd } = composeOf(task, host).main;
    return { cwd: config.environment.workdir ?? cwd, env: { ...environment, ...run.environmentEnv } };
  }
  return { cwd: config.environment.workdir, env: { ...resolveTemplates(config.environment.env, host), ...run.environmentEnv } };
}

/** Prepares a started sandbox: the log directories, files of an image without a Dockerfile, and the healthcheck. */
export async function prepareSandbox(
  task: Task,
  sandbox: TrialSandbox,
  options: MainOptions,
  tools: Omit<HealthcheckTools, "attempt">,
): Promise<void> {
  const directories = ["/logs/agent", "/logs/verifier", "/logs/artifacts"];
  const made = ["/logs", ...directories].map(realDirectory).join(" && ");
  const { exitCode, output } = await sandbox.exec(`${made} && chmod 777 ${directories.join(" ")}`, { user: "root", cwd: "/" });
  if (exitCode !== 0) throw new TrialFailure("SandboxBuildFailedError", `/logs could not be created: ${output.trim()}`);
  if (task.definition.kind === "image" && task.definition.files !== null) {
    await sandbox.upload(task.definition.files, await workingDirectory(sandbox, options));
  }
  const { healthcheck } = task.config.environment;
  if (healthcheck !== null) await waitUntilHealthy(healthcheck, { ...tools, attempt: attemptIn(sandbox, options) });
}

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

function attemptIn(sandbox: TrialSandbox, options: MainOptions): HealthcheckTools["attempt"] {
  return async (command, timeoutMs) => (await sandbox.exec(command, { ...options, timeoutMs })).exitCode === 0;
}

async function workingDirectory(sandbox: TrialSandbox, options: MainOptions, user: string | number | null = null): Promise<string> {
  const { exitCode, output } = await sandbox.exec("pwd", { ...options, user });
  if (exitCode !== 0) throw new TrialFailure("SandboxBuildFailedError", `the working directory is not known: ${output.trim()}`);
  return output.trim();
}

/** A copy of the tests that are part of the image, on the host: the directory is cleared before a verification. Null if there are none. */
export async function keepBakedTests(sandbox: TrialSandbox): Promise<string | null> {
  const files = await readFiles(sandbox, "/tests");
  if (files.length === 0) return null;
  const folder = await mkdtemp(join(tmpdir(), "baked-tests-"));
  await writeFiles(folder, files);
  return folder;
}
