import type { CommandResult } from "@aenv/contract";

const MAX_OUTPUT_CHARACTERS = 32_000;
const MAX_READ_CHARACTERS = 64_000;

/** What an agent sees of a command: its output, of a long one the beginning and the end, and how it ended. */
export function commandText({ stdout, exitCode, signal, timedOut, outOfMemory, droppedBytes }: CommandResult, timeoutMs: number): string {
  const output = withoutMiddle(stdout, MAX_OUTPUT_CHARACTERS, droppedBytes);
  const gap = output === "" || output.endsWith("\n") ? "" : "\n";
  const memory = outOfMemory ? ", the sandbox was out of memory" : "";
  if (timedOut) return `${output}${gap}[ended after ${timeoutMs / 1_000} s, the timeout of this call${memory}]`;
  return `${output}${gap}[${exitCode === null ? `ended by ${signal ?? "a signal"}` : `exit code ${exitCode}`}${memory}]`;
}

/** The beginning and the end of a long text, with what is missing between them. `dropped` bytes are missing there already. */
export function withoutMiddle(text: string, maxCharacters: number, dropped = 0): string {
  if (text.length <= maxCharacters && dropped === 0) return text;
  const half = Math.floor(Math.min(maxCharacters, text.length) / 2);
  const [head, tail] = [text.slice(0, half), text.slice(text.length - half)];
  const missing = dropped + Buffer.byteLength(text) - Buffer.byteLength(head) - Buffer.byteLength(tail);
  return `${head}\n[... ${missing} bytes left out ...]\n${tail}`;
}

/** Lines of a text from `first` on, at most `count`, and a note if the text goes on or begins earlier. */
export function linesText(text: string, first: number, count: number): string {
  // A line break belongs to the line that it ends.
  const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  if (first > Math.max(1, lines.length)) throw new Error(`line ${first} does not exist; the file has ${lines.length} lines`);
  let shown = "";
  let last = first - 1;
  for (const line of lines.slice(first - 1, first - 1 + count)) {
    if (shown !== "" && shown.length + line.length > MAX_READ_CHARACTERS) break;
    shown += withoutMiddle(line, MAX_READ_CHARACTERS);
    last++;
  }
  if (first === 1 && last === lines.length) return shown;
  const onwards = last < lines.length ? `; go on with first_line ${last + 1}` : "";
  return `${shown}${shown.endsWith("\n") ? "" : "\n"}[lines ${first} to ${last} of ${lines.length}${onwards}]`;
}

/** Replaces an exact text, which must occur once unless all of its occurrences are replaced. */
export function replaceText(text: string, oldText: string, newText: string, isEverywhere: boolean): { text: string; count: number } {
  const parts = text.split(oldText);
  const count = parts.length - 1;
  if (count === 0) throw new Error("old_text does not occur in the file; it must match exactly, also in spaces and line breaks");
  if (count > 1 && !isEverywhere)
    throw new Error(`old_text occurs ${count} times; add more of the text around it, or set replace_all to true`);
  return { text: parts.join(newText), count };
}
