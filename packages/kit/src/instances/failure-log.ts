import { isPlatformError } from "@aenv/contract";
import { NotJsonError } from "../json/to-json.ts";

/** Logs an exception of the environment's code; `what` names the code that threw it. */
export type FailureLog = (what: string, error: unknown) => void;

/** One message must not fill the sandbox's log. */
const MAX_CHARACTERS = 8_000;
const MAX_CAUSES = 4;

/**
 * A log of exceptions with their stacks, as text. It goes to the sandbox's standard error and never to the agent. Platform
 * errors, such as refusals and timeouts, have a code and a message of their own and are not logged.
 */
export function failureLog(write: (text: string) => void = writeStderr): FailureLog {
  return (what, error) => {
    if (isPlatformError(error)) return;
    write(`${describeFailure(what, error)}\n`);
  };
}

function writeStderr(text: string): void {
  process.stderr.write(text);
}

export function describeFailure(what: string, error: unknown): string {
  const text = `${what} failed: ${printable(stackOf(error, 0))}`;
  return text.length <= MAX_CHARACTERS ? text : `${text.slice(0, MAX_CHARACTERS)} … (${text.length - MAX_CHARACTERS} more characters)`;
}

/** Stacks only: other properties of an error may contain secrets, such as a request with its headers. */
function stackOf(error: unknown, depth: number): string {
  // Its stack has only frames of the kit; the path in its message leads to the mistake.
  if (error instanceof NotJsonError) return error.message;
  if (!(error instanceof Error)) return `${safeText(error)} (not an Error, so it has no stack)`;
  const own = typeof error.stack === "string" && error.stack !== "" ? error.stack : safeText(error);
  const parts = [own];
  if (error instanceof AggregateError) for (const one of error.errors.slice(0, MAX_CAUSES)) parts.push(`- ${stackOf(one, depth + 1)}`);
  if (error.cause !== undefined && depth < MAX_CAUSES) parts.push(`caused by: ${stackOf(error.cause, depth + 1)}`);
  return parts.join("\n");
}

function safeText(value: unknown): string {
  try {
    return String(value);
  } catch {
    return typeof value;
  }
}

/** A message may contain text of a model: it must not imitate a line of the log or send control characters to a terminal. */
function printable(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is replaced
      .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, "0")}`)
      .replace(/\n(?![ \t])/g, "\n    ")
  );
}
