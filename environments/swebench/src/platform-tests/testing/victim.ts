import { Environment } from "@aenv/sdk";
import { sweExamples } from "@aenv/testing";
import { loadDataset } from "../../dataset/load.ts";
import { columnText, instanceIdOf } from "../../dataset/row.ts";
import { gradeOutput } from "../../grading/report.ts";
import { type EvalSpec, makeSpec } from "../../spec/spec.ts";
import { type Attack, attackFiles } from "./attacks.ts";
import { instanceSandbox } from "./instance-sandbox.ts";
import { runners, type World } from "./world.ts";

export const TASK = "aenv__ledger-4";
const datasets = await Promise.all([sweExamples, runners].map((dataset) => loadDataset(dataset)));
const rows = new Map(datasets.flat().map((row) => [instanceIdOf(row), row]));
export const specOf = (task: string) => makeSpec(rows.get(task) ?? new Map());
export const victimSpec = specOf(TASK);
export const victimTestPatch = columnText(rows.get(TASK) ?? new Map(), "test_patch");
const TIMEOUT_SECONDS = 60;

/** An episode of a task that an agent attacks instead of solving it. */
export class Victim implements AsyncDisposable {
  readonly env: Environment;
  readonly #spec: EvalSpec;

  private constructor(env: Environment, spec: EvalSpec) {
    this.env = env;
    this.#spec = spec;
  }

  static async open(world: World, { ref = world.ref, task = TASK } = {}): Promise<Victim> {
    const env = await Environment.create(ref, { systemUrl: world.platform.controlUrl, task });
    const victim = new Victim(env, specOf(task));
    if (task === TASK)
      for (const [path, content] of attackFiles(victimSpec, victimTestPatch)) await env.callTool("write_file", { path, content });
    return victim;
  }

  /** Runs commands as the agent does. Its programs may be broken afterwards. */
  async run(command: string): Promise<string> {
    const { text } = await this.env.callTool("bash", { command, timeout: TIMEOUT_SECONDS });
    return text;
  }

  async solve(): Promise<void> {
    for (const action of (await this.env.episode.oracle()) ?? []) {
      if ("tool" in action) await this.env.callTool(action.tool, action.arguments);
    }
  }

  async reward(): Promise<{ readonly reward: number; readonly left_out: readonly string[]; readonly stderr: string | null }> {
    return (await this.env.callReward({ timeout: TIMEOUT_SECONDS })) as never;
  }

  /** Whether a grader that trusts this sandbox would consider the task solved. */
  async deceives(grader: NonNullable<Attack["deceives"]>): Promise<boolean> {
    const sandbox = instanceSandbox(this.env);
    const script =
      grader === "script"
        ? this.#spec.evalScript
        : this.#spec.evalScript.replace(/^git checkout .*\n|^git apply (?:.*\n)*?EOF_\d+\n/gm, "");
    await sandbox.write("/eval.sh", Buffer.from(script));
    const { output } = await sandbox.exec(["/bin/bash", "/eval.sh"], { timeoutMs: TIMEOUT_SECONDS * 1_000 });
    return gradeOutput(this.#spec, "", output).report.resolved;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.env.release();
  }
}
