import type { Measurement, Row } from "./row.ts";

/** A set of measurements; `npm run bench -- --only <name>` runs it alone. */
export interface Suite {
  readonly name: string;
  /** Why this machine cannot run it, or null if it can. */
  readonly needs?: () => Promise<string | null>;
  run(report: Report): Promise<void>;
}

/** Receives the results of a suite. */
export interface Report {
  add(measurement: Measurement): void;
  /** A part that this machine cannot measure, and why. */
  skip(what: string, why: string): void;
  /** Prints the current step. */
  progress(text: string): void;
}

/** The result of a run. */
export interface Outcome {
  readonly startedAt: Date;
  /** The load of the machine before the run: far above 0, the numbers are not reliable. */
  readonly loadAverage: number;
  readonly rows: readonly Row[];
  /** The parts that this machine could not measure, and why. */
  readonly leftOut: readonly string[];
  readonly failed: readonly string[];
  /** Whether the suite ran to its end. */
  readonly isComplete: boolean;
}
