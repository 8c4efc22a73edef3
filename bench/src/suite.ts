import type { Measurement, Row } from "./row.ts";

/** A set of measurements that belong together; `npm run bench -- --only <name>` runs it alone. */
export interface Suite {
  readonly name: string;
  /** Why this machine cannot run it, or null if it can. */
  readonly needs?: () => Promise<string | null>;
  run(report: Report): Promise<void>;
}

/** Where a suite tells what it found. */
export interface Report {
  add(measurement: Measurement): void;
  /** A part that this machine cannot measure, and why. */
  leaveOut(what: string, why: string): void;
  /** What is being done now, for whoever waits. */
  say(text: string): void;
}

/** What came of running it. */
export interface Outcome {
  readonly startedAt: Date;
  /** How busy the machine was before: far above 0, the numbers are those of a crowd. */
  readonly loadAverage: number;
  readonly rows: readonly Row[];
  /** What this machine could not measure, and why. */
  readonly leftOut: readonly string[];
  readonly failed: readonly string[];
  /** Whether the suite ran, to its end. */
  readonly isComplete: boolean;
}
