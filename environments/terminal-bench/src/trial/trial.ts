import { stopsAfter } from "../steps/stop.ts";
import type { Task } from "../task/model.ts";
import type { TrialAgent } from "./agents.ts";
import { createOutput } from "./folder.ts";
import { beginStep, closeTrial, failureOf, finishStep, openTrial, type Sandboxes, type Trial, type TrialSettings } from "./phases.ts";
import { planTask, type StepPlan } from "./plan.ts";
import { type Interval, outcomeOf, type StepReport, type TrialReport, trialReport } from "./report.ts";
import { runAgent } from "./steps.ts";

/** Runs one attempt of an agent on a task: start, agent, artifacts, verifier; once, or once for each step. */
export async function runTrial(
  task: Task,
  agent: TrialAgent,
  sandboxes: Sandboxes,
  folder: string,
  settings: TrialSettings,
): Promise<TrialReport> {
  const steps: StepReport[] = [];
  const startedAt = settings.clock.now();
  let environmentSetup: Interval | null = null;
  let trial: Trial | null = null;
  let failure = await failureOf(async () => {
    trial = await openTrial(task, sandboxes, folder, settings);
    environmentSetup = { startedAt, finishedAt: settings.clock.now() };
    await runSteps(trial, agent, steps);
  });
  const opened = trial as Trial | null;
  if (opened !== null) failure ??= await failureOf(() => closeTrial(opened));
  return trialReport(task, steps, environmentSetup, failure);
}

async function runSteps(trial: Trial, agent: TrialAgent, reports: StepReport[]): Promise<void> {
  const plans = planTask(trial.task, trial.settings);
  for (const [i, plan] of plans.entries()) {
    const report = await runStep(trial, agent, plan, i === plans.length - 1);
    reports.push(report);
    if (stopsAfter(outcomeOf(report), plan.minReward, trial.settings.verify)) break;
  }
}

async function runStep(trial: Trial, agent: TrialAgent, plan: StepPlan, isLast: boolean): Promise<StepReport> {
  const { sandbox, settings, options } = trial;
  const output = await createOutput(trial.folder, plan.name);
  const failure = await failureOf(() => beginStep(trial, plan));
  if (failure !== null)
    return { name: plan.name, agentExecution: null, verifierExecution: null, verification: null, failure, manifest: [] };
  const startedAt = settings.clock.now();
  const agentFailure = await failureOf(() => runAgent(sandbox, agent, plan, options, output));
  const agentExecution = { startedAt, finishedAt: settings.clock.now() };
  return finishStep(trial, plan, { agentExecution, failure: agentFailure }, isLast);
}
