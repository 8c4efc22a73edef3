import { existsSync } from "node:fs";
import { join } from "node:path";
import { nearestName, type OpenSandboxOptions } from "@aenv/kit";
import type { VerifySettings } from "../trial/run-tests.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

/** What an instance's variables say. */
export interface Settings {
  /** A dataset in any of its formats; null if none was named or prepared. */
  readonly dataPath: string | null;
  /** Name of the dataset, if the data is a registry file. */
  readonly dataset: string | null;
  /** The verifier runs in a new sandbox that gets the agent's file changes. */
  readonly isStrict: boolean;
  /** What root may do in the sandboxes; null for what config.json says, which is the most. */
  readonly capabilities: NonNullable<OpenSandboxOptions["capabilities"]> | null;
  /** What is before the names of built images. */
  readonly imagePrefix: string;
  readonly tb1Reward: VerifySettings["tb1Reward"];
  readonly timeoutMultiplier: number;
  /** What an instance was created with instead of a task: the id of one, or a text that ends with `/` and the id. */
  readonly datasource: string | null;
  /** The task of an instance that names none. */
  readonly taskId: string | null;
}

const NAMES = [
  "DATA_DIR",
  "DATASET",
  "STRICT",
  "CAPABILITIES",
  "IMAGES",
  "TB1_REWARD",
  "TIMEOUT_MULTIPLIER",
  "TASK",
  "METRIC_SCRIPTS",
] as const;
const PREFIX = "TERMINAL_BENCH_";

/** `bundled` is the folder of tasks that the environment itself contains, if it contains one. */
export function readSettings(variables: Variables, bundled: string | null): Settings {
  checkNames(variables);
  const value = (name: (typeof NAMES)[number]): string | null => variables[PREFIX + name] || null;
  const prepared = variables.AENV_DATA_DIR ? join(variables.AENV_DATA_DIR, "terminal-bench") : null;
  return {
    dataPath: value("DATA_DIR") ?? bundled ?? prepared,
    dataset: value("DATASET"),
    isStrict: oneOf("STRICT", value("STRICT") ?? "true", ["true", "false"]) === "true",
    capabilities: capabilitiesOf(value("CAPABILITIES")),
    imagePrefix: value("IMAGES") ?? "",
    tb1Reward: oneOf("TB1_REWARD", value("TB1_REWARD") ?? "parser", ["parser", "exit_code"]),
    timeoutMultiplier: multiplier(value("TIMEOUT_MULTIPLIER") ?? "1"),
    datasource: variables.AENV_DATASOURCE || null,
    taskId: value("TASK"),
  };
}

/** Without this check, a mistyped variable would have no effect and no error. */
function checkNames(variables: Variables): void {
  const known = NAMES.map((name) => PREFIX + name);
  for (const name of Object.keys(variables)) {
    if (!name.startsWith(PREFIX) || known.includes(name)) continue;
    const meant = nearestName(name, known);
    throw new Error(`there is no variable ${name}; ${meant === null ? `the variables are ${known.join(", ")}` : `did you mean ${meant}?`}`);
  }
}

/** The folder of tasks in a bundle; null if there is none. */
export function bundledTasks(folder: string): string | null {
  return existsSync(folder) ? folder : null;
}

function capabilitiesOf(given: string | null): Settings["capabilities"] {
  return given === null ? null : oneOf("CAPABILITIES", given, ["minimal", "docker"]);
}

function oneOf<const T extends string>(name: string, given: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === given);
  if (found === undefined) throw new Error(`${PREFIX}${name} is '${given}'; it must be ${allowed.join(" or ")}`);
  return found;
}

function multiplier(text: string): number {
  const number = Number(text);
  if (Number.isFinite(number) && number > 0) return number;
  throw new Error(`${PREFIX}TIMEOUT_MULTIPLIER is '${text}'; it must be a number above 0`);
}
