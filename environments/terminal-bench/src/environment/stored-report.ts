import { exceptionType } from "../trial/failure.ts";
import type { Interval, StepReport, TrialReport } from "../trial/report.ts";

/** A step as JSON. */
export type StoredStep = Omit<StepReport, "failure"> & { readonly failure: StoredFailure | null };

/** A report as JSON, in `trial.json` of an episode's artifacts. */
export interface StoredReport extends Omit<TrialReport, "steps" | "failure"> {
  readonly steps: readonly StoredStep[];
  readonly failure: StoredFailure | null;
}

interface StoredFailure {
  readonly type: string;
  readonly message: string;
}

export function storedReport({ steps, failure, ...report }: TrialReport): StoredReport {
  return { ...report, steps: steps.map(storedStep), failure: stored(failure) };
}

/** The report that was stored. A failure keeps its name and its message. */
export function readStoredReport(text: string): TrialReport {
  const { environmentSetup, steps, rewards, integers, failure } = JSON.parse(text) as StoredReport;
  return {
    environmentSetup: environmentSetup as Interval | null,
    steps: steps.map(readStoredStep),
    rewards,
    integers,
    failure: loaded(failure),
  };
}

export function storedStep(step: StepReport): StoredStep {
  return { ...step, failure: stored(step.failure) };
}

export function readStoredStep(step: StoredStep): StepReport {
  return { ...step, failure: loaded(step.failure) };
}

function stored(failure: Error | null): StoredFailure | null {
  return failure === null ? null : { type: exceptionType(failure), message: failure.message };
}

function loaded(failure: StoredFailure | null): Error | null {
  return failure === null ? null : Object.assign(new Error(failure.message), { name: failure.type });
}
