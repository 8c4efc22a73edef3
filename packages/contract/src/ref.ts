import { PlatformError } from "./errors.ts";

/** An environment as people write it: `tau2@1.0.2`, or `tau2` where the newest version will do. */
export interface EnvironmentRef {
  readonly name: string;
  /** Empty when none was given. */
  readonly version: string;
}

const NAME = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;
const NAME_MAX = 253;

/** The name as given and the version after the first `@`, unchecked: how the original's clients split. */
export function splitRef(text: string): EnvironmentRef {
  const at = text.indexOf("@");
  return at < 0 ? { name: text, version: "" } : { name: text.slice(0, at), version: text.slice(at + 1) };
}

/** A full `name@version`; exactly one `@`, both sides there. */
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

/** Why a name may not be published, or null if it may. */
export function nameProblem(name: string): string | null {
  if (name === "") return "the name is empty";
  if (name.length > NAME_MAX) return `the name has ${name.length} characters; at most ${NAME_MAX} are allowed`;
  if (!NAME.test(name)) {
    return `'${name}' may hold only lower-case letters, digits and '-', and must begin and end with a letter or digit`;
  }
  return null;
}

/** A name that may be published, or a clear error. */
export function parseName(name: string): string {
  const problem = nameProblem(name);
  if (problem !== null) throw new PlatformError("request.invalid", `invalid environment name: ${problem}`, { details: { name } });
  return name;
}

/** `1.0.0`, `2`, `0.1.9-rc.1`, `2024-11-16`: begins with a letter or digit and goes on with these and `.`, `-`, `+`, `_`. */
const VERSION = /^[0-9A-Za-z][0-9A-Za-z._+-]*$/;
const VERSION_MAX = 128;
/** A part that stands for any version, as in `1.x`. */
const WILDCARD = /(?:^|\.)[xX](?:\.|$)/;

/** Why a text is no version that an author can publish under, or null if it is one. Texts that name other versions, such as `latest` and `1.x`, are none. */
export function versionProblem(version: string): string | null {
  if (version.length > VERSION_MAX) return `a version of ${version.length} characters is too long; at most ${VERSION_MAX} are allowed`;
  if (VERSION.test(version) && /\d/.test(version) && !WILDCARD.test(version)) return null;
  return `'${version}' is not a version; a version looks like 1.0.0 or 1.1.0-rc.1: letters, digits and . - + _, with at least one digit`;
}

function invalid(message: string): PlatformError {
  return new PlatformError("request.invalid", `Invalid EnvName format: ${message}`);
}
