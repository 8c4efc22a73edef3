import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { EpisodeContext, OracleAction } from "@aenv/kit";
import { hasServices } from "../compose/of-task.ts";
import { isSamePolicy } from "../network/policy.ts";
import { PlatformSandbox } from "../platform/task-sandbox.ts";
import { stopsAfter } from "../steps/stop.ts";
import type { Task } from "../task/model.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { placeSolution } from "../trial/agents.ts";
import { beginStep, closeTrial, finishStep, openTrial, type Trial, type TrialSettings } from "../trial/phases.ts";
import { planTask, type StepPlan } from "../trial/plan.ts";
import { type Interval, outcomeOf, type StepReport, type TrialReport, trialReport } from "../trial/report.ts";
import { mainOptions } from "../trial/start.ts";
import { NO_MULTIPLIERS } from "../trial/timeouts.ts";
import { agentFiles } from "./agent-files.ts";
import { networksOf, problemsOf } from "./open-options.ts";
import { oracleSettings, solutionActions } from "./oracle.ts";
import { platformSandboxes, type SandboxOptions } from "./sandboxes.ts";
import type { Settings, Variables } from "./settings.ts";
import { readStoredStep, type StoredStep, storedStep } from "./stored-report.ts";

type Sandboxes = Pick<EpisodeContext, "sandbox" | "sandboxes">;

/** `stopped`: a step ended the trial before the last one. */
type End = "open" | "done" | "stopped";

/** A value that stands for an episode when it is forked. */
export interface EpisodeRecord {
  readonly taskId: string;
  readonly reports: readonly StoredStep[];
  readonly setup: Interval | null;
  readonly end: End;
  /** What the agent has used of its time at the step. */
  readonly stepElapsedMs: number;
}

/** One attempt at a task: the steps that were verified, and the one at which the agent works. */
export class Episode {
  readonly task: Task;
  readonly plans: readonly StepPlan[];
  /** Where the files of the trial are collected. */
  readonly folder: string;
  /** Changes of the agent that the last verification did not see. */
  leftOut: readonly string[] = [];
  /** A terminal that the agent uses; null until it does. */
  terminal: Terminal | null = null;
  readonly #settings: TrialSettings;
  readonly #sandboxOptions: SandboxOptions;
  /** Of the steps that are over. */
  readonly #reports: StepReport[] = [];
  /** Of the step at which the agent works, as it was verified last. */
  #latest: StepReport | null = null;
  #trial: Trial | null = null;
  #setup: Interval | null = null;
  #stepStartedAt = 0;
  #end: End = "open";
  #isOracle = false;

  private constructor(task: Task, settings: Settings, host: Variables, folder: string) {
    this.task = task;
    this.folder = folder;
    this.#settings = {
      host,
      // Tests that change while they run are not trusted.
      isStrict: true,
      tb1Reward: settings.tb1Reward,
      verify: true,
      clock: { now: Date.now, sleep: (ms) => setTimeout(ms) },
      multipliers: { ...NO_MULTIPLIERS, timeout_multiplier: settings.timeoutMultiplier },
    };
    this.plans = planTask(task, this.#settings).map((plan) => withAgentPolicy(plan, settings.isStrict));
    this.#sandboxOptions = {
      task,
      main: mainOptions(task, this.#settings, host),
      host,
      isStrict: settings.isStrict,
      capabilities: settings.capabilities,
      imagePrefix: settings.imagePrefix,
      policy: this.plan.network.agent,
      endProcesses: () => this.#endTerminal(),
      onLeftOut: (paths) => {
        this.leftOut = paths;
      },
    };
  }

  /** Starts the sandbox of a task. */
  static async open(task: Task, settings: Settings, host: Variables, context: Sandboxes): Promise<Episode> {
    const problems = problemsOf(task, settings.isStrict);
    if (problems.length > 0) throw new Error(`the task '${basename(task.folder)}' cannot be played: ${problems.join("; ")}`);
    const episode = new Episode(task, settings, host, await mkdtemp(join(tmpdir(), "trial-")));
    try {
      const startedAt = Date.now();
      episode.#trial = await openTrial(
        task,
        platformSandboxes(episode.#sandboxOptions, context.sandboxes),
        episode.folder,
        episode.#settings,
      );
      await episode.#tryNetworks(context);
      for (const [path, text] of agentFiles(task, host)) await context.sandbox.files.write(path, text, { mode: 0o644 });
      episode.#setup = { startedAt, finishedAt: Date.now() };
      await episode.#begin(context);
      return episode;
    } catch (error) {
      await episode.close();
      throw error;
    }
  }

  /** Continues an episode in a copy of its sandbox. */
  static async restore(task: Task, settings: Settings, host: Variables, record: EpisodeRecord, context: Sandboxes): Promise<Episode> {
    if (hasServices(task)) throw new Error("an episode with several services cannot be forked");
    if (!settings.isStrict)
      throw new Error("an episode can be forked only with TERMINAL_BENCH_STRICT=true: the tests of the image are needed");
    const episode = new Episode(task, settings, host, await mkdtemp(join(tmpdir(), "trial-")));
    const { folder } = episode;
    const options = episode.#sandboxOptions.main;
    const sandboxes = platformSandboxes(episode.#sandboxOptions, context.sandboxes);
    const sandbox = new PlatformSandbox(context.sandbox);
    episode.#trial = { task, sandboxes, sandbox, folder, settings: episode.#settings, options, bakedTests: null, isStopped: false };
    episode.#reports.push(...record.reports.map(readStoredStep));
    episode.#setup = record.setup;
    episode.#end = record.end;
    episode.#stepStartedAt = Date.now() - record.stepElapsedMs;
    return episode;
  }

  record(): EpisodeRecord {
    return {
      taskId: this.taskId,
      reports: this.#reports.map(storedStep),
      setup: this.#setup,
      end: this.#end,
      stepElapsedMs: Date.now() - this.#stepStartedAt,
    };
  }

  get taskId(): string {
    return basename(this.task.folder);
  }

  /** The step at which the agent works, or the last one. */
  get plan(): StepPlan {
    const plan = this.plans[Math.min(this.#reports.length, this.plans.length - 1)];
    if (plan === undefined) throw new Error("the task has no steps");
    return plan;
  }

  get isOver(): boolean {
    return this.#end !== "open";
  }

  /** Working directory and variables of the agent's commands. */
  get options(): SandboxOptions["main"] {
    return this.#sandboxOptions.main;
  }

  /** What is left of the agent's time at this step; null without a limit. */
  remainingMs(now = Date.now()): number | null {
    const { timeoutSec } = this.plan.agent;
    return timeoutSec === null ? null : Math.max(0, this.#stepStartedAt + timeoutSec * 1_000 - now);
  }

  /** The agent is done with a step. Answers the instruction of the next one, or null if there is none. */
  async endStep(context: Sandboxes): Promise<string | null> {
    if (this.isOver) return null;
    if (this.#reports.length >= this.plans.length - 1) {
      this.#end = "done";
      return null;
    }
    const { minReward } = this.plan;
    const report = await this.#finish(context);
    this.#reports.push(report);
    this.#latest = null;
    if (stopsAfter(outcomeOf(report), minReward, true)) {
      this.#end = "stopped";
      return null;
    }
    await this.#begin(context);
    return this.plan.instruction;
  }

  /** Verifies the step at which the agent works; the steps before it were verified when they ended. */
  async verify(context: Sandboxes): Promise<TrialReport> {
    if (this.#end !== "stopped") this.#latest = await this.#finish(context);
    return this.report;
  }

  /** What is known so far. */
  get report(): TrialReport {
    return trialReport(this.task, [...this.#reports, ...(this.#latest === null ? [] : [this.#latest])], this.#setup, null);
  }

  /** The actions of the reference solution; null if the task has none. It is copied into the sandbox for the step at which it is used. */
  async oracle(context: Sandboxes): Promise<readonly OracleAction[] | null> {
    if (this.plans.some(({ solution }) => solution === null)) return null;
    this.#isOracle = true;
    await this.#placeSolution(context);
    return this.plans.slice(this.#reports.length).flatMap((plan) => solutionActions(this.task, plan, this.#settings.host));
  }

  /** Deletes the files of the trial. Its sandboxes end with the episode. */
  async close(): Promise<void> {
    await this.#endTerminal().catch(() => {});
    if (this.#trial !== null) await closeTrial({ ...this.#trial, isStopped: true }).catch(() => {});
    await rm(this.folder, { recursive: true, force: true });
  }

  /** An engine that cannot enforce a later policy refuses it now, before the agent begins. */
  async #tryNetworks(context: Sandboxes): Promise<void> {
    const [first, ...others] = networksOf(this.plans, this.#sandboxOptions.isStrict);
    if (first === undefined || others.length === 0) return;
    const { sandbox } = this.#trialFor(context);
    try {
      for (const policy of [...others, first]) await sandbox.setNetwork(policy);
    } catch (error) {
      if (!(error instanceof Error) || (error as { code?: unknown }).code !== "sandbox.unsupported") throw error;
      throw new Error(`the task '${this.taskId}' cannot be played: its network policy changes, and ${error.message}`, { cause: error });
    }
  }

  async #begin(context: Sandboxes): Promise<void> {
    const before = this.plans[this.#reports.length - 1]?.network.agent;
    const { agent } = this.plan.network;
    if (before !== undefined && !isSamePolicy(before, agent)) await this.#trialFor(context).sandbox.setNetwork(agent);
    await beginStep(this.#trialFor(context), this.plan);
    if (this.#isOracle) await this.#placeSolution(context);
    this.#stepStartedAt = Date.now();
  }

  async #finish(context: Sandboxes): Promise<StepReport> {
    await this.#endTerminal();
    const agentExecution = { startedAt: this.#stepStartedAt, finishedAt: Date.now() };
    // The agent's sandbox is kept: the platform ends it with the episode.
    return finishStep(this.#trialFor(context), this.plan, { agentExecution, failure: null }, false);
  }

  async #endTerminal(): Promise<void> {
    const { terminal } = this;
    this.terminal = null;
    await terminal?.close();
  }

  async #placeSolution(context: Sandboxes): Promise<void> {
    await placeSolution(this.#trialFor(context).sandbox, this.plan, oracleSettings(this.task, this.#settings.host));
  }

  /** The trial with the sandboxes of this call, which end with its signal. */
  #trialFor({ sandbox, sandboxes }: Sandboxes): Trial {
    if (this.#trial === null) throw new Error("the task's sandbox was not started");
    const agent = new PlatformSandbox(sandbox, this.#sandboxOptions.endProcesses);
    return { ...this.#trial, sandbox: agent, sandboxes: platformSandboxes(this.#sandboxOptions, sandboxes) };
  }
}

/** The agent's sandbox has the agent's policy from the start of a step, and that of the verifier the verifier's. */
function withAgentPolicy(plan: StepPlan, isStrict: boolean): StepPlan {
  const { agent, verifier } = plan.network;
  return { ...plan, network: { ...plan.network, baseline: agent, verifierBaseline: isStrict ? verifier : agent } };
}
