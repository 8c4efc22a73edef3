import { PlatformError } from "./errors.ts";

/** A reference to an environment: `tau2@1.0.2`, or `tau2` for the newest version. */
export interface EnvironmentRef {
  readonly name: string;
  /** Empty when none was given. */
  readonly version: string;
}

const NAME = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;
const NAME_MAX = 253;

/** Splits at the first `@`, without checks, as the original's clients do. */
export function splitRef(text: string): EnvironmentRef {
  const at = text.indexOf("@");
  return at < 0 ? { name: text, version: "" } : { name: text.slice(0, at), version: text.slice(at + 1) };
}

/** Parses a complete `name@version` with exactly one `@`. */
export function parseRef(text: string): EnvironmentRef {
  const parts = text.split("@");
  const [name = "", version = ""] = parts;
  if (parts.length !== 2) throw invalid(`expected 'name@version', got: ${text.slice(0, 100)}`);
  if (name === "") throw invalid("env name cannot be empty");
  if (version === "") throw invalid("env version cannot be empty");
  return { name, version };
}

export function formatRef({ name, version }: EnvironmentRef): string {
  return version === "" ? name : `${name}@${version}`;
}

/** Why a name is invalid, or null if it is valid. */
export function nameProblem(name: string): string | null {
  if (name === "") return "the name is empty";
  if (name.length > NAME_MAX) return `the name has ${name.length} characters; at most ${NAME_MAX} are allowed`;
  if (!NAME.test(name)) {
    return `'${name}' may contain only lower-case letters, digits and '-', and must begin and end with a letter or digit`;
  }
  return null;
}

/** Returns a valid name, or throws. */
export function parseName(name: string): string {
  const problem = nameProblem(name);
  if (problem !== null) throw new PlatformError("request.invalid", `invalid environment name: ${problem}`, { details: { name } });
  return name;
}

/** `1.0.0`, `2`, `0.1.9-rc.1`, `2024-11-16`: a letter or digit, then letters, digits, `.`, `-`, `+` and `_`. */
const VERSION = /^[0-9A-Za-z][0-9A-Za-z._+-]*$/;
const VERSION_MAX = 128;
/** A wildcard part, as in `1.x`. */
const WILDCARD = /(?:^|\.)[xX](?:\.|$)/;

/** Why a version is invalid, or null if it is valid. Texts that select other versions, such as `latest` and `1.x`, are invalid. */
export function versionProblem(version: string): string | null {
  if (version.length > VERSION_MAX) return `a version of ${version.length} characters is too long; at most ${VERSION_MAX} are allowed`;
  if (VERSION.test(version) && /\d/.test(version) && !WILDCARD.test(version)) return null;
  return `'${version}' is not a version; a version looks like 1.0.0 or 1.1.0-rc.1: letters, digits and . - + _, with at least one digit`;
}

function invalid(message: string): PlatformError {
  return new PlatformError("request.invalid", `Invalid EnvName format: ${message}`);
}
