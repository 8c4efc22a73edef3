import type { ComposeFile } from "../compose/compose.ts";
import type { SolutionCommand } from "../tb1/config.ts";
import type { ParserName } from "../tb1/parsers.ts";
import type { StepConfig, TaskConfig } from "./config/config.ts";
import type { EnvironmentConfig } from "./config/environment.ts";
import type { IsIgnored } from "./ignore.ts";
import type { PriorContext } from "./prior-context.ts";

/** A task of either format, as it was read from its folder. */
export interface Task {
  readonly format: "harbor" | "terminal-bench-1";
  readonly folder: string;
  /** `org/name` of the package, or the folder's name. */
  readonly name: string;
  readonly shortName: string;
  /** Empty for a task with steps. */
  readonly instruction: string;
  readonly config: TaskConfig;
  /** Empty for a task without steps. */
  readonly steps: readonly TaskStep[];
  readonly definition: EnvironmentDefinition;
  readonly tests: TestScript | null;
  readonly solution: Solution | null;
  /** Null if the verification runs in the agent's environment, and for a task with steps. */
  readonly verifierEnvironment: VerifierEnvironment | null;
  readonly isIgnored: IsIgnored;
  /** The conversation that the agent continues; null if it begins with the instruction. */
  readonly priorContext: PriorContext | null;
  /** Null in formats other than Terminal-Bench 1. */
  readonly parser: ParserName | null;
  readonly warnings: readonly string[];
}

export interface TaskStep {
  readonly config: StepConfig;
  readonly instruction: string;
  /** Folders of the host; null if the step has none. */
  readonly testsFolder: string | null;
  readonly solution: Solution | null;
  readonly workdirFolder: string | null;
  readonly hasSetup: boolean;
  /** Null if the verification runs in the agent's environment. */
  readonly verifierEnvironment: VerifierEnvironment | null;
}

/** The environment of a verification that does not run in the agent's. */
export interface VerifierEnvironment {
  readonly config: EnvironmentConfig;
  readonly definition: EnvironmentDefinition;
  /** Whether its image was made for it and contains the tests; otherwise it is the agent's, and they are copied into it. */
  readonly hasTests: boolean;
}

/** What the container of the agent is made from. */
export type EnvironmentDefinition =
  | { readonly kind: "image"; readonly image: string /** Files for the working directory. */; readonly files: string | null }
  | { readonly kind: "dockerfile"; readonly context: string; readonly dockerfile: string }
  | ComposeDefinition
  /** The folder has nothing to make a container from, so the task can be read but not played. */
  | { readonly kind: "none"; readonly context: string };

/** Services of a compose file, of which one is the agent's. */
export interface ComposeDefinition {
  readonly kind: "compose";
  readonly file: string;
  readonly compose: ComposeFile;
  readonly mainService: string;
  /** What the agent's service is made from, unless the file says otherwise. */
  readonly base: { readonly image: string } | { readonly context: string; readonly dockerfile: string } | null;
}

export interface TestScript {
  /** The folder whose content goes to `/tests`; null if there is only the script. */
  readonly folder: string | null;
  /** The script on the host, if it is not in the folder. */
  readonly script: string | null;
}

/** The reference solution: a script in a folder, or commands for a terminal. */
export type Solution =
  | { readonly kind: "script"; readonly folder: string; readonly script: string }
  | { readonly kind: "commands"; readonly commands: readonly SolutionCommand[] };
