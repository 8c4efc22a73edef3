import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { EpisodeContext, OracleAction } from "@aenv/kit";
import { hasServices } from "../compose/of-task.ts";
import type { Task } from "../task/model.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { Sandboxes } from "../trial/phases.ts";
import { NO_MULTIPLIERS } from "../trial/plan/timeouts.ts";
import type { TrialReport } from "../trial/report.ts";
import { placeSolution } from "../trial/solution.ts";
import { Trial, type TrialRecord } from "../trial/trial.ts";
import { agentFiles } from "./agent-files.ts";
import { networksOf, problemsOf } from "./open-options.ts";
import { solutionActions } from "./oracle.ts";
import { platformSandboxes, type SandboxOptions } from "./sandboxes.ts";
import type { Settings, Variables } from "./settings.ts";
import { readStoredStep, type StoredStep, storedStep } from "./stored-report.ts";

type Context = Pick<EpisodeContext, "sandbox" | "sandboxes">;

/** A value that stands for an episode when it is forked. */
export interface EpisodeRecord extends Omit<TrialRecord, "reports"> {
  readonly taskId: string;
  readonly reports: readonly StoredStep[];
}

/** A trial in sandboxes of the platform, with the agent's terminal. */
export class Episode {
  readonly trial: Trial;
  /** Changes of the agent that the last verification did not see. */
  leftOut: readonly string[] = [];
  /** A terminal that the agent uses; null until it does. */
  terminal: Terminal | null = null;
  readonly #sandboxOptions: SandboxOptions;
  #isOracle = false;

  private constructor(task: Task, settings: Settings, host: Variables, folder: string, record?: TrialRecord) {
    const { isStrict, capabilities, imagePrefix, tb1Reward, timeoutMultiplier } = settings;
    const trialSettings = {
      host,
      // Tests that change while they run are not trusted.
      isStrict: true,
      tb1Reward,
      clock: { now: Date.now, sleep: (ms: number) => setTimeout(ms) },
      multipliers: { ...NO_MULTIPLIERS, timeout_multiplier: timeoutMultiplier },
    };
    this.trial = new Trial(task, folder, trialSettings, record);
    this.#sandboxOptions = {
      task,
      main: this.trial.options,
      host,
      isStrict,
      capabilities,
      imagePrefix,
      endProcesses: () => this.#endTerminal(),
      onLeftOut: (paths) => {
        this.leftOut = paths;
      },
    };
  }

  /** Starts the sandbox of a task. */
  static async open(task: Task, settings: Settings, host: Variables, context: Context): Promise<Episode> {
    const problems = problemsOf(task, settings.isStrict);
    if (problems.length > 0) throw new Error(`the task '${basename(task.folder)}' cannot be played: ${problems.join("; ")}`);
    const episode = new Episode(task, settings, host, await mkdtemp(join(tmpdir(), "trial-")));
    const sandboxes = episode.#sandboxes(context);
    try {
      await episode.trial.open(sandboxes, async () => {
        await episode.#tryNetworks(sandboxes);
        for (const [path, text] of agentFiles(task, host)) await context.sandbox.files.write(path, text, { mode: 0o644 });
      });
      return episode;
    } catch (error) {
      await episode.close();
      throw error;
    }
  }

  /** Continues an episode in a copy of its sandbox. */
  static async restore(task: Task, settings: Settings, host: Variables, record: EpisodeRecord): Promise<Episode> {
    if (hasServices(task)) throw new Error("an episode with several services cannot be forked");
    if (!settings.isStrict)
      throw new Error("an episode can be forked only with TERMINAL_BENCH_STRICT=true: the tests of the image are needed");
    const folder = await mkdtemp(join(tmpdir(), "trial-"));
    return new Episode(task, settings, host, folder, { ...record, reports: record.reports.map(readStoredStep) });
  }

  record(): EpisodeRecord {
    const record = this.trial.record();
    return { ...record, taskId: this.taskId, reports: record.reports.map(storedStep) };
  }

  get taskId(): string {
    return basename(this.trial.task.folder);
  }

  /** The agent is done with a step. Answers the instruction of the next one, or null if there is none. */
  async endStep(context: Context): Promise<string | null> {
    const sandboxes = this.#sandboxes(context);
    const next = await this.trial.endStep(sandboxes);
    if (next !== null && this.#isOracle) await this.#placeSolution(sandboxes);
    return next;
  }

  /** Verifies the step at which the agent works; the steps before it were verified when they ended. */
  verify(context: Context): Promise<TrialReport> {
    return this.trial.verify(this.#sandboxes(context));
  }

  /** The actions of the reference solution; null if the task has none. It is copied into the sandbox for the step at which it is used. */
  async oracle(context: Context): Promise<readonly OracleAction[] | null> {
    const { task, plans, plansLeft } = this.trial;
    if (plans.some(({ solution }) => solution === null)) return null;
    this.#isOracle = true;
    await this.#placeSolution(this.#sandboxes(context));
    return plansLeft.flatMap((plan) => solutionActions(task, plan, this.#sandboxOptions.host));
  }

  /** Deletes the files of the trial. Its sandboxes end with the episode. */
  async close(): Promise<void> {
    await this.#endTerminal().catch(() => {});
    await this.trial.close().catch(() => {});
    await rm(this.trial.folder, { recursive: true, force: true });
  }

  /** An engine that cannot enforce a later policy refuses it now, before the agent begins. */
  async #tryNetworks({ agent }: Sandboxes): Promise<void> {
    const [first, ...others] = networksOf(this.trial.plans, this.#sandboxOptions.isStrict);
    if (first === undefined || others.length === 0) return;
    try {
      for (const policy of [...others, first]) await agent.setNetwork(policy);
    } catch (error) {
      if (!(error instanceof Error) || (error as { code?: unknown }).code !== "sandbox.unsupported") throw error;
      throw new Error(`the task '${this.taskId}' cannot be played: its network policy changes, and ${error.message}`, { cause: error });
    }
  }

  async #endTerminal(): Promise<void> {
    const { terminal } = this;
    this.terminal = null;
    await terminal?.close();
  }

  async #placeSolution({ agent }: Sandboxes): Promise<void> {
    await placeSolution(agent, this.trial.task, this.trial.plan, this.#sandboxOptions.host);
  }

  #sandboxes(context: Context): Sandboxes {
    return platformSandboxes(this.#sandboxOptions, context);
  }
}
