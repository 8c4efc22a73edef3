import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Solution, Task } from "../task/model.ts";
import { type HostVariables, resolveTemplates } from "../templates/template.ts";
import { TrialFailure } from "./failure.ts";
import type { StepPlan } from "./plan/plan.ts";
import type { TrialSandbox } from "./sandbox.ts";

/** How a solution that was copied into a sandbox is run there, as the agent's user. */
export interface SolutionRun {
  readonly folder: string;
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Terminal-Bench 1 keeps its solution in another folder. */
export function solutionRun({ format, config }: Task, host: HostVariables): SolutionRun {
  const isTb1 = format === "terminal-bench-1";
  return {
    folder: isTb1 ? "/oracle" : "/solution",
    command: `(${isTb1 ? "bash /oracle/solution.sh" : "/solution/solve.sh"}) > /logs/agent/oracle.txt 2>&1`,
    env: { DEBIAN_FRONTEND: "noninteractive", ...resolveTemplates(config.solution.env, host) },
  };
}

/** Copies the solution of a step into the sandbox. */
export async function placeSolution(sandbox: TrialSandbox, task: Task, { solution }: StepPlan, host: HostVariables): Promise<SolutionRun> {
  if (solution === null) throw new TrialFailure("SolutionNotFoundError", "the task has no solution, which the oracle needs");
  const run = solutionRun(task, host);
  const { folder } = run;
  const copy = await mkdtemp(join(tmpdir(), "solution-"));
  try {
    await copySolution(solution, task, copy);
    await sandbox.exec(`rm -rf ${folder} && mkdir -p ${folder}`, { user: "root", cwd: "/" });
    await sandbox.upload(copy, folder);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
  if (task.format === "terminal-bench-1") return run;
  const { exitCode } = await sandbox.exec(`chmod -R a+rX ${folder} && chmod +x ${folder}/solve.sh`, { user: "root", cwd: "/" });
  if (exitCode !== 0) throw new TrialFailure("SolutionNotFoundError", "the solution has no solve.sh");
  return run;
}

async function copySolution(solution: Solution, { format, isIgnored }: Task, target: string): Promise<void> {
  if (solution.kind === "commands") {
    await writeFile(join(target, "solution.sh"), `${solution.commands.map(({ command }) => command).join("\n")}\n`);
  } else if (format === "terminal-bench-1") await cp(join(solution.folder, solution.script), join(target, "solution.sh"));
  else await cp(solution.folder, target, { recursive: true, verbatimSymlinks: true, filter: (path) => !isIgnored(path) });
}
