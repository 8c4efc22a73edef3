import { readFileSync } from "node:fs";
import { relative } from "node:path";
import type { Failure, Place, Problem } from "./failure.ts";
import type { Colors } from "./terminal.ts";

/** A failure as text: each problem with its line of code, then the hint. */
export function failureText(failure: Failure, colors: Colors, cwd: string, isVerbose = false): string {
  const lines = failure.problems.flatMap((problem) => problemLines(problem, colors, cwd));
  if (failure.hint !== undefined)
    lines.push(...failure.hint.split("\n").map((line, index) => `${index === 0 ? colors.cyan("→") : " "} ${line}`));
  const stack = failure.cause instanceof Error ? failure.cause.stack : failure.stack;
  if (isVerbose && stack !== undefined) lines.push(colors.dim(stack));
  return lines.join("\n");
}

function problemLines({ message, place }: Problem, colors: Colors, cwd: string): string[] {
  const [first = "", ...rest] = message.split("\n");
  const where = place === undefined ? "" : `${colors.cyan(placeText(place, cwd))} `;
  const lines = [`${colors.red("✖")} ${where}${colors.bold(first)}`, ...rest.map((line) => `  ${line}`)];
  return place === undefined ? lines : [...lines, ...codeFrame(place, colors)];
}

/** `src/index.ts:12:3`, which terminals and editors turn into a link. */
export function placeText(place: Place, cwd: string): string {
  const path = relative(cwd, place.file);
  return `${path === "" || path.startsWith("..") ? place.file : path}:${place.line}:${place.column}`;
}

/** The line and its neighbours, with a caret under the column. Empty if the file cannot be read. */
function codeFrame(place: Place, colors: Colors): string[] {
  const source = readLines(place.file);
  if (source[place.line - 1] === undefined) return [];
  const first = Math.max(1, place.line - 1);
  const last = Math.min(source.length, place.line + 1);
  const width = String(last).length;
  const lines: string[] = [];
  for (let number = first; number <= last; number++) {
    const text = (source[number - 1] ?? "").replaceAll("\t", " ");
    const isHere = number === place.line;
    const gutter = `${isHere ? colors.red(">") : " "} ${colors.dim(`${String(number).padStart(width)} │`)}`;
    lines.push(`  ${gutter} ${isHere ? text : colors.dim(text)}`.trimEnd());
    if (isHere) lines.push(`    ${" ".repeat(width)} ${colors.dim("│")} ${" ".repeat(Math.max(0, place.column - 1))}${colors.red("^")}`);
  }
  return lines;
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split(/\r?\n/);
  } catch {
    return [];
  }
}
