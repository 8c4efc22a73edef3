import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { IsIgnored } from "../task/ignore.ts";
import type { Solution } from "../task/model.ts";
import { type HostVariables, resolveTemplates } from "../templates/template.ts";
import { TrialFailure } from "./failure.ts";
import type { OutputFolder } from "./folder.ts";
import type { StepPlan } from "./plan.ts";
import type { TrialSandbox } from "./sandbox.ts";
import type { MainOptions } from "./start.ts";

export interface AgentRun {
  readonly sandbox: TrialSandbox;
  readonly plan: StepPlan;
  readonly options: MainOptions;
  readonly output: OutputFolder;
  readonly timeoutMs: number | undefined;
}

/** An agent of a trial. It throws `TrialFailure` for a timeout or a command that failed; both are recorded and verified. */
export interface TrialAgent {
  readonly name: string;
  readonly version: string;
  /** `provider/model`; null without one. */
  readonly model: string | null;
  readonly run: (run: AgentRun) => Promise<void>;
}

/** Does nothing. */
export const nop: TrialAgent = { name: "nop", version: "1.0.0", model: null, run: async () => {} };

export interface OracleSettings {
  readonly solutionEnv: Readonly<Record<string, string>>;
  readonly agentEnv?: Readonly<Record<string, string>>;
  readonly host: HostVariables;
  /** Terminal-Bench 1 keeps its solution elsewhere. */
  readonly isTb1: boolean;
}

/** Runs the reference solution, as the agent's user. Its exit code is recorded; it does not end the trial. */
export function oracle(settings: OracleSettings): TrialAgent {
  return {
    name: "oracle",
    version: "1.0.0",
    model: null,
    run: async ({ sandbox, plan, options, output, timeoutMs }) => {
      const { command, env, folder } = await placeSolution(sandbox, plan, settings);
      const result = await sandbox.exec(command, { ...options, env: { ...options.env, ...env }, user: plan.agent.user, timeoutMs });
      await sandbox.exec(`rm -rf ${folder}`, { user: "root", cwd: "/" });
      if (result.isTimedOut)
        throw new TrialFailure("AgentTimeoutError", `the solution took longer than ${(timeoutMs ?? 0) / 1000} seconds`);
      if (result.exitCode !== 0) await writeFile(join(output.agent, "exit-code.txt"), String(result.exitCode));
    },
  };
}

/** How a solution that was copied into a sandbox is run there, as the agent's user. */
export interface SolutionRun {
  readonly folder: string;
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
}

export function solutionRun({ isTb1, agentEnv, solutionEnv, host }: OracleSettings): SolutionRun {
  return {
    folder: isTb1 ? "/oracle" : "/solution",
    command: `(${isTb1 ? "bash /oracle/solution.sh" : "/solution/solve.sh"}) > /logs/agent/oracle.txt 2>&1`,
    env: { DEBIAN_FRONTEND: "noninteractive", ...agentEnv, ...resolveTemplates(solutionEnv, host) },
  };
}

/** Copies the solution into the sandbox. */
export async function placeSolution(
  sandbox: TrialSandbox,
  { solution, isIgnored }: Pick<StepPlan, "solution" | "isIgnored">,
  settings: OracleSettings,
): Promise<SolutionRun> {
  if (solution === null) throw new TrialFailure("SolutionNotFoundError", "the task has no solution, which the oracle needs");
  const run = solutionRun(settings);
  await uploadSolution(sandbox, solution, isIgnored, run.folder);
  return run;
}

async function uploadSolution(sandbox: TrialSandbox, solution: Solution, isIgnored: IsIgnored, folder: string): Promise<void> {
  const copy = await mkdtemp(join(tmpdir(), "solution-"));
  try {
    if (solution.kind === "commands") {
      await writeFile(join(copy, "solution.sh"), `${solution.commands.map(({ command }) => command).join("\n")}\n`);
    } else if (folder === "/oracle") await cp(join(solution.folder, solution.script), join(copy, "solution.sh"));
    else await cp(solution.folder, copy, { recursive: true, verbatimSymlinks: true, filter: (path) => !isIgnored(path) });
    await sandbox.exec(`rm -rf ${folder} && mkdir -p ${folder}`, { user: "root", cwd: "/" });
    await sandbox.upload(copy, folder);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
  if (folder === "/oracle") return;
  const { exitCode } = await sandbox.exec(`chmod -R a+rX ${folder} && chmod +x ${folder}/solve.sh`, { user: "root", cwd: "/" });
  if (exitCode !== 0) throw new TrialFailure("SolutionNotFoundError", "the solution has no solve.sh");
}
