import type { OracleAction } from "@aenv/kit";
import type { Task } from "../task/model.ts";
import type { HostVariables } from "../templates/template.ts";
import type { StepPlan } from "../trial/plan/plan.ts";
import { quoted } from "../trial/shell.ts";
import { solutionRun } from "../trial/solution.ts";

/** Runs the solution of a step with the tool `bash`, and then says that the step is done. */
export function solutionActions(task: Task, plan: StepPlan, host: HostVariables): readonly OracleAction[] {
  const { command, env } = solutionRun(task, host);
  const variables = Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`);
  const { timeoutSec } = plan.agent;
  return [
    { tool: "bash", arguments: { command: [...variables, command].join("\n"), ...(timeoutSec !== null && { timeout: timeoutSec }) } },
    { say: "Done." },
  ];
}
