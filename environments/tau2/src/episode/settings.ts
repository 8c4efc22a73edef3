import { existsSync } from "node:fs";
import { join } from "node:path";
import { type ModelHandle, nearestName } from "@aenv/kit";
import type { ModelSettings } from "../llm/chat.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

/** The settings of an episode, from `TAU2_*` variables. */
export interface Settings {
  readonly domain: string;
  /** Null means the first task of the domain's default split. */
  readonly taskId: string | null;
  readonly dataPath: string;
  readonly maxSteps: number;
  /** Null: solo if the domain supports it. */
  readonly isSolo: boolean | null;
  /** Null if no model plays the user. */
  readonly user: ModelSettings | null;
  readonly judge: ModelSettings | null;
}

export const DEFAULT_DOMAIN = "telecom";
const MODELS = ["TAU2_USER_LLM", "TAU2_JUDGE_LLM"];
const KNOWN = [
  "TAU2_DOMAIN",
  "TAU2_TASK_ID",
  "TAU2_DATA_DIR",
  "TAU2_MAX_STEPS",
  "TAU2_SOLO_MODE",
  ...MODELS.flatMap((model) => [model, `${model}_API_BASE`, `${model}_API_KEY`, `${model}_TEMPERATURE`]),
];
const DEFAULT_MODEL = "gpt-4.1-2025-04-14";
const DEFAULT_BASE_URL = "https://api.openai.com/v1";

export function readSettings(variables: Variables): Settings {
  checkNames(variables);
  const dataPath = findDataPath(variables);
  if (dataPath === null) throw new Error(`tau2 has no data: ${whereData(variables)}`);
  return {
    domain: variables.TAU2_DOMAIN || DEFAULT_DOMAIN,
    taskId: variables.TAU2_TASK_ID || null,
    dataPath,
    maxSteps: readNumber(variables, "TAU2_MAX_STEPS", 50),
    isSolo: readSolo(variables),
    user: readModel(variables, "TAU2_USER_LLM"),
    judge: readModel(variables, "TAU2_JUDGE_LLM"),
  };
}

/** Without this check, a mistyped variable would have no effect and no error. */
export function checkNames(variables: Variables): void {
  for (const name of Object.keys(variables)) {
    if (!name.startsWith("TAU2_") || KNOWN.includes(name)) continue;
    const meant = nearestName(name, KNOWN);
    throw new Error(`tau2 has no variable ${name}; ${meant === null ? `its variables are ${KNOWN.join(", ")}` : `did you mean ${meant}?`}`);
  }
}

/** The data directory: `TAU2_DATA_DIR`, else the directory that `aenv bench data tau2` has prepared; null if there is neither. */
function findDataPath({ TAU2_DATA_DIR: own, AENV_DATA_DIR: all }: Variables): string | null {
  if (own) return own;
  if (!all) return null;
  const prepared = join(all, "tau2");
  return existsSync(prepared) ? prepared : null;
}

function whereData({ AENV_DATA_DIR: all }: Variables): string {
  const prepare = "prepare it with: aenv bench data tau2 --from CHECKOUT_OR_ARCHIVE_OF_THE_BENCHMARK";
  const place = all ? `${join(all, "tau2")} does not exist` : "neither TAU2_DATA_DIR nor AENV_DATA_DIR is set";
  return `${place}; ${prepare}, or set TAU2_DATA_DIR to a directory with it`;
}

export function readSolo({ TAU2_SOLO_MODE: value }: Variables): boolean | null {
  return value === undefined || value === "" ? null : value.toLowerCase() === "true" || value === "1";
}

/** The variables without keys and passwords, also those inside URLs. */
export function shownVariables(variables: Variables): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const [name, value] of Object.entries(variables)) {
    if (!name.startsWith("TAU2_") || value === undefined || /KEY|SECRET|TOKEN|PASSWORD/.test(name)) continue;
    shown[name] = value.replace(/\/\/[^/@]*@/, "//").replace(/\?.*$/, "");
  }
  return shown;
}

/** The settings in which a model without an endpoint of its own is one that the environment, or the request for its instance, declares. */
export function withDeclared(settings: Settings, model: (name: string) => ModelHandle): Settings {
  const resolve = (one: ModelSettings | null) => (one?.isDeclared === true ? { ...one, declared: model(one.model) } : one);
  return { ...settings, user: resolve(settings.user), judge: resolve(settings.judge) };
}

/**
 * A model is configured if its name or its URL is set. With neither a URL nor a key, the name is that of a declared model. Otherwise it may
 * have a provider prefix, as in `openai/gpt-4.1`.
 */
function readModel(variables: Variables, prefix: string): ModelSettings | null {
  const model = variables[prefix] ?? "";
  const baseUrl = variables[`${prefix}_API_BASE`] ?? "";
  if (model === "" && baseUrl === "") return null;
  if (baseUrl === "" && (variables[`${prefix}_API_KEY`] ?? "") === "") {
    return { model, baseUrl: "", apiKey: "", temperature: readNumber(variables, `${prefix}_TEMPERATURE`, 0), isDeclared: true };
  }
  return {
    model: model.replace(/^openai\//, "") || DEFAULT_MODEL,
    baseUrl: (baseUrl || DEFAULT_BASE_URL).replace(/\/+$/, ""),
    apiKey: variables[`${prefix}_API_KEY`] ?? "",
    temperature: readNumber(variables, `${prefix}_TEMPERATURE`, 0),
  };
}

function readNumber(variables: Variables, name: string, otherwise: number): number {
  const text = variables[name] ?? "";
  if (text === "") return otherwise;
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error(`${name} must be a number, but is '${text}'`);
  return value;
}
