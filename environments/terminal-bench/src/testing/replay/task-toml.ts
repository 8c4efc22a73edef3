import { isDeepStrictEqual } from "node:util";
import { InvalidValue } from "../../fields/field.ts";
import type { ArtifactConfig } from "../../task/config/artifact.ts";
import { parseTaskConfig, type TaskConfig } from "../../task/config/config.ts";
import type { EnvironmentConfig } from "../../task/config/environment.ts";
import { DEFAULT_VERIFIER_TIMEOUT_SEC, type VerifierConfig } from "../../task/config/phases.ts";
import { parseTaskToml, TomlSyntaxError } from "../../task/config/toml.ts";

/** What the reference says about a document: its exception, or the values that differ from those of an empty document. */
export function readTaskToml(source: string): { readonly error: string } | { readonly ok_non_default: unknown } {
  try {
    const config = parseTaskToml(source, "reference");
    return { ok_non_default: difference(dump(config), dump(parseTaskConfig({}, "reference"))) };
  } catch (error) {
    if (error instanceof InvalidValue) return { error: "ValidationError" };
    if (error instanceof TomlSyntaxError) return { error: "TOMLDecodeError" };
    if (error instanceof RangeError) return { error: "OverflowError" };
    throw error;
  }
}

type Table = Readonly<Record<string, unknown>>;

/** The configuration with the keys and defaults of the reference. */
function dump(config: TaskConfig): Table {
  return {
    ...config,
    // Values of any type are written as JSON, which has no NaN; JSON.stringify writes null as well.
    metadata: JSON.parse(JSON.stringify(config.metadata)),
    task: config.task && withoutKey(config.task, "version"),
    environment: dumpEnvironment(config.environment),
    verifier: dumpVerifier(config.verifier),
    artifacts: config.artifacts.map(dumpArtifact),
    steps:
      config.steps?.map((step) => ({ ...step, verifier: dumpVerifier(step.verifier), artifacts: step.artifacts.map(dumpArtifact) })) ??
      null,
  };
}

function dumpEnvironment({ mcp_servers, ...environment }: EnvironmentConfig): Table {
  return { ...environment, mcp_servers: mcp_servers.map((server) => withoutKey(server, "headers")) };
}

function dumpVerifier({ collect: _, environment, ...verifier }: VerifierConfig): Table {
  return {
    ...verifier,
    environment: environment && dumpEnvironment(environment),
    timeout_sec: verifier.timeout_sec ?? DEFAULT_VERIFIER_TIMEOUT_SEC,
  };
}

function dumpArtifact(artifact: string | ArtifactConfig): unknown {
  if (typeof artifact === "string") return artifact;
  return withoutKey(artifact, "service");
}

function withoutKey(table: object, key: string): Table {
  return Object.fromEntries(Object.entries(table).filter(([name]) => name !== key));
}

function difference(value: Table, standard: Table): Table {
  const entries = Object.entries(value).flatMap(([key, one]): [string, unknown][] => {
    const other = standard[key];
    if (!Object.hasOwn(standard, key)) return [[key, one]];
    if (isTable(one) && isTable(other)) {
      const inner = difference(one, other);
      return Object.keys(inner).length === 0 ? [] : [[key, inner]];
    }
    return isDeepStrictEqual(one, other) ? [] : [[key, one]];
  });
  return Object.fromEntries(entries);
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
