import { either, isTable, list, map, object } from "../../fields/containers.ts";
import { before, type Field, InvalidValue, type Notes, optional, refine, withDefault } from "../../fields/field.ts";
import { anything, float, oneOf, text } from "../../fields/scalars.ts";
import { type ArtifactConfig, artifactsField } from "./artifact.ts";
import { type EnvironmentConfig, environmentField } from "./environment.ts";
import { type HealthcheckConfig, healthcheck } from "./healthcheck.ts";
import type { Edition } from "./network.ts";
import { type AgentConfig, agentField, type VerifierConfig, verifierField } from "./phases.ts";
import { parseStepName, stepNameKey } from "./step-name.ts";

/** `org/name`. The final line break is accepted because the reference accepts it. */
const PACKAGE_NAME = /^[a-zA-Z0-9][a-zA-Z0-9._-]*\/[a-zA-Z0-9][a-zA-Z0-9._-]*\n?$/;

export interface StepConfig {
  readonly name: string;
  readonly agent: AgentConfig;
  readonly verifier: VerifierConfig;
  readonly min_reward: number | Readonly<Record<string, number>> | null;
  readonly healthcheck: HealthcheckConfig | null;
  readonly artifacts: readonly (string | ArtifactConfig)[];
}

export interface PackageInfo {
  readonly name: string;
  /** The version of the package, usually a semantic one. */
  readonly version: string | null;
  readonly description: string;
  readonly authors: readonly { readonly name: string; readonly email: string | null }[];
  readonly keywords: readonly string[];
}

/** `task.toml`, with the names of the file. */
export interface TaskConfig {
  readonly schema_version: string;
  readonly source: string | null;
  readonly task: PackageInfo | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly agent: AgentConfig;
  readonly verifier: VerifierConfig;
  readonly environment: EnvironmentConfig;
  readonly solution: { readonly env: Readonly<Record<string, string>> };
  readonly multi_step_reward_strategy: "mean" | "final" | null;
  readonly steps: readonly StepConfig[] | null;
  readonly artifacts: readonly (string | ArtifactConfig)[];
}

/** Checks the values of a parsed document. Throws `InvalidValue`. */
export function parseTaskConfig(document: unknown, edition: Edition = "later", notes?: Notes): TaskConfig {
  return taskField(edition).parse(document, "", notes);
}

export function parsePackageName(name: string, at = ""): string {
  if (PACKAGE_NAME.test(name) && !name.includes("..")) return name;
  throw new InvalidValue(at, `'${name}' is not a name such as org/name`);
}

export const packageInfo: Field<PackageInfo> = object({
  name: refine(text, parsePackageName),
  version: optional(
    refine(text, (version, at) => {
      if (version === "") throw new InvalidValue(at, "must not be empty");
      return version;
    }),
  ),
  description: withDefault(text, ""),
  authors: withDefault(list(object({ name: text, email: optional(text) })), []),
  keywords: withDefault(list(text), []),
});

const withoutVersion: Field<PackageInfo> = before((value) => (isTable(value) ? { ...value, version: null } : value), packageInfo);

function taskField(edition: Edition): Field<TaskConfig> {
  const field = object({
    schema_version: withDefault(text, edition === "later" ? "1.4" : "1.3"),
    source: optional(text),
    task: optional(edition === "later" ? packageInfo : withoutVersion),
    metadata: withDefault(map(anything), {}),
    agent: tableWithDefaults(agentField(edition)),
    verifier: tableWithDefaults(verifierField(edition)),
    environment: tableWithDefaults(environmentField(edition)),
    solution: tableWithDefaults(object({ env: withDefault(map(text), {}) })),
    multi_step_reward_strategy: optional(oneOf("mean", "final")),
    steps: optional(edition === "later" ? refine(list(stepField(edition)), uniqueSteps) : list(stepField(edition))),
    artifacts: artifactsField(edition),
  });
  return before(withSchemaVersion, field);
}

function stepField(edition: Edition): Field<StepConfig> {
  return object({
    name: edition === "later" ? refine(text, parseStepName) : text,
    agent: tableWithDefaults(agentField(edition)),
    verifier: tableWithDefaults(verifierField(edition)),
    min_reward: optional(either(float, map(float))),
    healthcheck: optional(healthcheck),
    artifacts: artifactsField(edition),
  });
}

function uniqueSteps(steps: readonly StepConfig[], at: string): readonly StepConfig[] {
  const keys = steps.map(({ name }) => stepNameKey(name));
  const repeated = steps.find((_, i) => keys.indexOf(keys[i] ?? "") !== i);
  if (repeated !== undefined)
    throw new InvalidValue(at, `the name '${repeated.name}' is used twice; letters of any case count as the same`);
  return steps;
}

/** A missing table is an empty one. */
function tableWithDefaults<T>(field: Field<T>): Field<T> {
  return { parse: field.parse, absent: () => field.parse({}, "") };
}

/** `version` is the old name of `schema_version`. */
function withSchemaVersion(document: unknown): unknown {
  if (!isTable(document) || !("version" in document)) return document;
  const { version, ...rest } = document;
  return { schema_version: version, ...rest };
}
