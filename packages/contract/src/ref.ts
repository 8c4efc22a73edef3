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
  if (parts.length !== 2) throw invalid(`invalid env format, expected 'name@version', got: ${text}`);
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

function invalid(message: string): PlatformError {
  return new PlatformError("request.invalid", `Invalid EnvName format: ${message}`);
}
