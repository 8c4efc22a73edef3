/** How a process ended, as far as the system tells. */
export interface Ending {
  /** Null if it is not known: only a parent learns it. */
  readonly exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | null;
  /** The last lines it printed, oldest first. */
  readonly lines: readonly string[];
  readonly memoryMb: number | null;
}

/** A sentence that says why a sandbox is no more, for whoever has to find out. */
export function describeEnding({ exit, lines, memoryMb }: Ending): string {
  const limit = memoryMb === null ? "" : ` (it may have ${memoryMb} MB)`;
  // Node prints the machine's stack after these words; they say more than its last line.
  if (lines.some((line) => line.includes("JavaScript heap out of memory"))) return `the program ran out of memory${limit}`;
  const last = lastWord(lines);
  return last === null ? cause(exit, limit) : `${cause(exit, limit)}; it last printed: ${last}`;
}

function cause(exit: Ending["exit"], limit: string): string {
  if (exit === null) return "the program is gone; its exit code is unknown, for an earlier process of ours had started it";
  switch (exit.signal) {
    case null:
      return `the program ended by itself with exit code ${exit.code}`;
    case "SIGKILL":
      return `the program was killed from outside, as the system does when memory runs short${limit}`;
    case "SIGXCPU":
      return "the program has used up its CPU time";
    default:
      return `the program was ended by ${exit.signal}`;
  }
}

const MAX_WORD = 300;

/** The last line that says something: what a program prints of its own crash ends with blank lines and its version. */
function lastWord(lines: readonly string[]): string | null {
  const said = lines.map((line) => line.trim()).filter((line) => line !== "" && !/^Node\.js v\d/.test(line));
  const error = said.findLast((line) => /^(?:\w+)?(?:Error|Exception)\b.*:/.test(line));
  const word = error ?? said.at(-1);
  if (word === undefined) return null;
  return word.length > MAX_WORD ? `${word.slice(0, MAX_WORD)}…` : word;
}
