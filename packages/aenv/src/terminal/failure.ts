import { type ErrorCode, isObject, isPlatformError, messageOf } from "@aenv/contract";
import type { Exit } from "./exit-codes.ts";

/** A location in a file; lines and columns count from 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export interface Problem {
  readonly message: string;
  readonly place?: Place | undefined;
}

/** A command's failure for the user: what is wrong, where, and what to do next. One without problems has been printed already. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly exit: Exit;
  readonly code: string;
  readonly problems: readonly Problem[];
  readonly hint: string | undefined;

  constructor(
    problems: string | readonly Problem[],
    options: { exit?: Exit; code?: string; hint?: string | undefined; cause?: unknown } = {},
  ) {
    const list = typeof problems === "string" ? [{ message: problems }] : problems;
    super(list.map((problem) => problem.message).join("; "), { cause: options.cause });
    this.exit = options.exit ?? "failed";
    this.code = options.code ?? `command.${this.exit}`;
    this.problems = list;
    this.hint = options.hint;
  }
}

/** Any thrown value as a failure. The hint for an unexpected error is --verbose, which prints the stack. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (isPlatformError(error)) {
    const message = innermostMessage(error.message);
    return new Failure([{ message, place: placeIn(error.details) }], {
      exit: exits[error.code] ?? "failed",
      code: error.code,
      hint: hintUnlessRepeated(message, hints[error.code]),
      cause: error,
    });
  }
  const systemCode = (error as NodeJS.ErrnoException | null)?.code;
  return new Failure(messageOf(error), {
    code: "internal",
    cause: error,
    hint: systemCode === undefined ? "Run it again with --verbose to see the stack." : undefined,
  });
}

export function failureAsJson(failure: Failure): { error: Record<string, unknown> } {
  return {
    error: {
      code: failure.code,
      message: failure.message,
      hint: failure.hint ?? null,
      problems: failure.problems.map(({ message, place }) => ({ message, ...place })),
    },
  };
}

function placeIn({ place }: Readonly<Record<string, unknown>>): Place | undefined {
  if (!isObject(place) || typeof place.file !== "string" || typeof place.line !== "number") return undefined;
  return { file: place.file, line: place.line, column: typeof place.column === "number" ? place.column : 1 };
}

/** The last part of `could not do A: could not do B: why`, to which each layer has added its own. */
export function innermostMessage(message: string): string {
  const at = message.lastIndexOf(": could not ");
  return message.startsWith("could not ") && at >= 0 ? message.slice(at + 2) : message;
}

/** The hint, unless the message names the same command. */
export function hintUnlessRepeated(message: string, hint: string | undefined): string | undefined {
  const [command] = /aenv [a-z]+/.exec(hint ?? "") ?? [];
  return command !== undefined && message.includes(command) ? undefined : hint;
}

const exits: Partial<Readonly<Record<ErrorCode, Exit>>> = {
  "network.failed": "unreachable",
  "request.timeout": "unreachable",
  "request.invalid": "usage",
  "access.unauthenticated": "denied",
  "access.denied": "denied",
};

const hints: Readonly<Record<string, string>> = {
  "network.failed": "Is the environment running? Start it with: aenv run",
  "request.timeout": "Raise the limit with --timeout 60s, or read the environment's output.",
  "tool.not_found": "List them with: aenv call --list",
  "function.not_found": "List them with: aenv call --list",
  "reward.missing": "Add one with registerReward, or under `rewards` of defineEnvironment.",
  "instance.not_found": "Leave out --instance to use the first one.",
  "task.not_found": "List them with: aenv call --tasks",
  "access.unauthenticated": "Give a token with --api-key or AENV_API_KEY, or store one with: aenv login",
  "access.denied": "Use a token that has the role; an administrator creates one with: aenv token create",
  "environment.unhealthy": "Read the output of the environment's process.",
};
