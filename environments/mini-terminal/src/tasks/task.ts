import type { OracleAction } from "aenvironment";
import type { Random } from "./random.ts";
import type { Files } from "./tree.ts";

/** A task: its files and its expected result are made from a seed. */
export interface TerminalTask {
  readonly id: string;
  readonly split: "train" | "test";
  readonly instruction: string;
  readonly begin: (random: Random) => Exercise;
}

/** One episode of a task. What is expected stays in the memory of the environment, where no command finds it. */
export interface Exercise {
  /** What is in the working folder at the beginning. */
  readonly files: Files;
  /** Why the task is not solved; nothing if it is. */
  readonly check: (result: ExerciseResult) => Promise<readonly string[]>;
  readonly solution: readonly OracleAction[];
}

export interface ExerciseResult {
  readonly folder: string;
  /** Runs a command in the working folder, in a shell that the agent has not used. */
  readonly run: (command: string) => Promise<{ readonly output: string; readonly exitCode: number }>;
}

/** Commands as the actions of a solution. */
export function commands(...texts: readonly string[]): OracleAction[] {
  return texts.map((command) => ({ tool: "execute_command", arguments: { command } }));
}
