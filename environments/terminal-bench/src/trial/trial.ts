import { rm } from "node:fs/promises";
import type { Task } from "../task/model.ts";
import { beginStep, finishStep, type Sandboxes, startAgent, type TrialParts, type TrialSettings } from "./phases.ts";
import { isSamePolicy } from "./plan/network.ts";
import { planTask, type StepPlan } from "./plan/plan.ts";
import { stopsAfter } from "./plan/stop.ts";
import { type Interval, outcomeOf, type StepReport, type TrialReport, trialReport } from "./report.ts";
import { type MainOptions, mainOptions } from "./start.ts";

/** A value that stands for a trial, from which a copy goes on. `stopped`: a step ended the trial before the last one. */
export interface TrialRecord {
  readonly reports: readonly StepReport[];
  readonly setup: Interval | null;
  readonly end: "open" | "done" | "stopped";
  /** What the agent has used of its time at the step. */
  readonly stepElapsedMs: number;
}

const NEW: TrialRecord = { reports: [], setup: null, end: "open", stepElapsedMs: 0 };

/** One attempt at a task: the steps that were verified, and the one at which the agent works. The caller runs the agent. */
export class Trial {
  readonly task: Task;
  readonly plans: readonly StepPlan[];
  /** Where the files of the trial are collected. */
  readonly folder: string;
  /** Working directory and variables of the agent's commands. */
  readonly options: MainOptions;
  readonly #settings: TrialSettings;
  /** Reports of the steps that are over. */
  readonly #reports: StepReport[];
  /** Report of the step at which the agent works, as it was verified last. */
  #latest: StepReport | null = null;
  #bakedTests: string | null = null;
  #setup: Interval | null;
  #end: TrialRecord["end"];
  #stepStartedAt: number;

  constructor(task: Task, folder: string, settings: TrialSettings, record: TrialRecord = NEW) {
    this.task = task;
    this.folder = folder;
    this.#settings = settings;
    this.plans = planTask(task, settings);
    this.options = mainOptions(task, settings, settings.host);
    this.#reports = [...record.reports];
    this.#setup = record.setup;
    this.#end = record.end;
    this.#stepStartedAt = settings.clock.now() - record.stepElapsedMs;
  }

  /** Starts the agent's sandbox, and the first step when `prepare` has ended. */
  async open(sandboxes: Sandboxes, prepare: () => Promise<void> = async () => {}): Promise<void> {
    const startedAt = this.#now();
    this.#bakedTests = await startAgent(this.#parts(sandboxes), this.plan);
    await prepare();
    this.#setup = { startedAt, finishedAt: this.#now() };
    await this.#begin(sandboxes);
  }

  record(): TrialRecord {
    return { reports: [...this.#reports], setup: this.#setup, end: this.#end, stepElapsedMs: this.#now() - this.#stepStartedAt };
  }

  /** The step at which the agent works and those after it; only the last one when all are over. */
  get plansLeft(): readonly StepPlan[] {
    return this.plans.slice(Math.min(this.#reports.length, this.plans.length - 1));
  }

  /** The step at which the agent works, or the last one. */
  get plan(): StepPlan {
    const [plan] = this.plansLeft;
    if (plan === undefined) throw new Error("the task has no steps");
    return plan;
  }

  get isOver(): boolean {
    return this.#end !== "open";
  }

  /** What is left of the agent's time at this step; null without a limit. */
  remainingMs(): number | null {
    const { timeoutSec } = this.plan.agent;
    return timeoutSec === null ? null : Math.max(0, this.#stepStartedAt + timeoutSec * 1_000 - this.#now());
  }

  /** The agent is done with a step. Answers the instruction of the next one, or null if there is none. */
  async endStep(sandboxes: Sandboxes): Promise<string | null> {
    if (this.isOver) return null;
    if (this.#reports.length >= this.plans.length - 1) {
      this.#end = "done";
      return null;
    }
    const { minReward, network } = this.plan;
    const report = await this.#finish(sandboxes);
    this.#reports.push(report);
    this.#latest = null;
    if (stopsAfter(outcomeOf(report), minReward)) {
      this.#end = "stopped";
      return null;
    }
    if (!isSamePolicy(network.agent, this.plan.network.agent)) await sandboxes.agent.setNetwork(this.plan.network.agent);
    await this.#begin(sandboxes);
    return this.plan.instruction;
  }

  /** Verifies the step at which the agent works; the steps before it were verified when they ended. */
  async verify(sandboxes: Sandboxes): Promise<TrialReport> {
    if (this.#end !== "stopped") this.#latest = await this.#finish(sandboxes);
    return this.report;
  }

  /** What is known so far. */
  get report(): TrialReport {
    return trialReport(this.task, [...this.#reports, ...(this.#latest === null ? [] : [this.#latest])], this.#setup);
  }

  /** Deletes what it keeps outside of its folder. The caller ends the sandboxes. */
  async close(): Promise<void> {
    if (this.#bakedTests !== null) await rm(this.#bakedTests, { recursive: true, force: true });
  }

  async #begin(sandboxes: Sandboxes): Promise<void> {
    await beginStep(this.#parts(sandboxes), this.plan);
    this.#stepStartedAt = this.#now();
  }

  async #finish(sandboxes: Sandboxes): Promise<StepReport> {
    await sandboxes.agent.endProcesses();
    return finishStep(this.#parts(sandboxes), this.plan, { startedAt: this.#stepStartedAt, finishedAt: this.#now() });
  }

  #parts(sandboxes: Sandboxes): TrialParts {
    const { task, folder, options } = this;
    return { task, sandboxes, folder, settings: this.#settings, options, bakedTests: this.#bakedTests };
  }

  #now(): number {
    return this.#settings.clock.now();
  }
}
