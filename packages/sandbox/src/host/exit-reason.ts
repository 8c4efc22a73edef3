import { constants } from "node:os";

/** How a process ended, as far as the system reports it. */
export interface ProcessEnd {
  /** Null if it is not known: the system reports it only to the parent process. */
  readonly exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | null;
  /** The last lines it printed, oldest first. */
  readonly lines: readonly string[];
  readonly memoryMb: number | null;
}

/** A sentence that says why a sandbox ended. */
export function describeExit({ exit, lines, memoryMb }: ProcessEnd): string {
  const limit = memoryMb === null ? "" : ` (its limit is ${memoryMb} MB)`;
  // Node prints native stack frames after this message, so the last line would say less.
  if (lines.some((line) => line.includes("JavaScript heap out of memory"))) return `the program ran out of memory${limit}`;
  const last = lastMessage(lines);
  return last === null ? cause(exit, limit) : `${cause(exit, limit)}; it last printed: ${last}`;
}

function cause(exit: ProcessEnd["exit"], limit: string): string {
  if (exit === null) return "the program has ended; its exit code is unknown, because the process that started it has ended";
  switch (exit.signal) {
    case null:
      return `the program exited with exit code ${exit.code}`;
    case "SIGKILL":
      return `the program was killed by SIGKILL, as the system does when memory is exhausted${limit}`;
    case "SIGXCPU":
      return "the program has used up its CPU time limit";
    default:
      return `the program was ended by ${exit.signal}`;
  }
}

const MAX_MESSAGE = 300;

/** The last error line, or else the last line with text. Node ends the output of a crash with blank lines and its version. */
function lastMessage(lines: readonly string[]): string | null {
  const printed = lines.map((line) => line.trim()).filter((line) => line !== "" && !/^Node\.js v\d/.test(line));
  const error = printed.findLast((line) => /^(?:\w+)?(?:Error|Exception)\b.*:/.test(line));
  const message = error ?? printed.at(-1);
  if (message === undefined) return null;
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message;
}

/** The init exits as a shell does: with 128 and the number of the signal that ended the program. */
export function exitOf(code: number): NonNullable<ProcessEnd["exit"]> {
  const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
  return signal === undefined ? { code, signal: null } : { code: null, signal: signal as NodeJS.Signals };
}
