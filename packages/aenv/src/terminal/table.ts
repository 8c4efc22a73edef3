import Table from "cli-table3";
import { COLOR, visible } from "./fit.ts";
import type { Colors, Output } from "./terminal.ts";

/** Columns that become narrower stay at least so wide. */
const MIN_WIDTH = 5;
const COLOR_OR_CHARACTER = new RegExp(`${COLOR}|.`, "gsu");

/**
 * Rows under their titles, with one line below the titles and none between the rows. A column that no row has a value for is left out.
 * At a terminal that is narrower than the table, the columns of the titles in `optional` are left out first, in this order, and cells of
 * the widest columns continue on further lines.
 */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  output: Output,
  optional: readonly string[] = [],
): string {
  const { colors, isTty, columns } = output;
  let kept = head.map((_, at) => at).filter((at) => rows.length === 0 || rows.some((row) => visible(row[at] ?? "") !== ""));
  const cells = () => [head, ...rows].map((row) => kept.map((at) => row[at] ?? ""));
  // Each cell has a space on both sides; a line is between two cells and at both ends.
  const room = () => columns - 3 * kept.length - 1;
  for (const title of isTty ? optional : []) {
    if (sum(widthsOf(cells(), /\s+/)) <= room()) break;
    kept = kept.filter((at) => head[at] !== title);
  }
  const [titles = [], ...shown] = cells();
  const widths = isTty ? narrowed([titles, ...shown], room()) : null;
  const cellsOf = (row: readonly string[]) => (widths === null ? [...row] : row.map((cell, at) => withShortWords(cell, widths[at] ?? 1)));
  const drawn = new Table({
    head: cellsOf(titles.map((title) => colors.dim(title))),
    style: { head: [], border: colors.isColorSupported ? ["gray"] : [] },
    ...(widths !== null && { colWidths: widths.map((width) => width + 2), wordWrap: true }),
  });
  drawn.push(...shown.map(cellsOf));
  const lines = drawn.toString().split("\n");
  // Titles may take several lines.
  const rule = lines.findIndex((line) => line.includes("├"));
  return lines.filter((line, index) => index === rule || !line.includes("├")).join("\n");
}

/** How wide the columns are whose cells are not broken, or broken at each `separator`. */
function widthsOf(rows: readonly (readonly string[])[], separator: RegExp): number[] {
  const [first = []] = rows;
  return first.map((_, at) => Math.max(...rows.flatMap((row) => visible(row[at] ?? "").split(separator)).map(widthOf)));
}

/**
 * Widths of columns with which a table is not wider than `most`; null if it is not anyway. The widest columns are cut, to their longest
 * words if that is enough. The first column is cut last: it has the names that are typed or copied.
 */
function narrowed(rows: readonly (readonly string[])[], most: number): number[] | null {
  const [cut, words] = [widthsOf(rows, /\n/), widthsOf(rows, /\s+/)];
  let excess = sum(cut) - most;
  if (excess <= 0) return null;
  const least = words.map((width) => Math.min(width, MIN_WIDTH));
  for (const floor of [words, least.with(0, words[0] ?? 0), least]) {
    for (; excess > 0; excess--) {
      const widest = Math.max(...cut.filter((width, at) => width > (floor[at] ?? 0)));
      if (widest < 0) break;
      const at = cut.findLastIndex((width, index) => width === widest && width > (floor[index] ?? 0));
      cut[at] = widest - 1;
    }
  }
  return cut;
}

function sum(widths: readonly number[]): number {
  return widths.reduce((total, width) => total + width, 0);
}

/** A longer word continues on the next line: the library would cut it. */
function withShortWords(cell: string, width: number): string {
  let used = 0;
  return cell.replace(COLOR_OR_CHARACTER, (part) => {
    if (part.length > 2) return part;
    used = /\s/.test(part) ? 0 : used + widthOf(part);
    if (used <= width) return part;
    used = widthOf(part);
    return `\n${part}`;
  });
}

/** Characters of East Asian scripts and emoji take two columns; some others that take one are counted as two. */
function widthOf(text: string): number {
  return [...text].reduce((sum, character) => sum + (character < "\u1100" ? 1 : 2), 0);
}

/** Titles and values, a line each; those without a value are left out. */
export function facts(pairs: readonly (readonly [title: string, value: string | null | undefined])[], { colors }: Output): string {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  const width = Math.max(...known.map(([title]) => title.length)) + 2;
  return known.map(([title, value]) => `  ${colors.dim(title.padEnd(width))}${value}`).join("\n");
}

/** Green for running, yellow for starting, red for failed or ended. */
export function statusText(status: string, colors: Colors): string {
  if (/^(?:running|active|ready|healthy|released|verified)$/i.test(status)) return colors.green(status);
  if (/^(?:init|pending|creating|created|starting|testing)$/i.test(status)) return colors.yellow(status);
  if (/^(?:failed|error|terminated|stopped)$/i.test(status)) return colors.red(status);
  return colors.dim(status);
}

/** A time in this machine's time zone. Text that is no time is returned unchanged. */
export function timeText(iso: string | null | undefined): string {
  const ms = Date.parse(iso ?? "");
  if (Number.isNaN(ms)) return iso ?? "";
  const at = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return at.toISOString().slice(0, 19).replace("T", " ");
}

export function truncate(text: string, length: number): string {
  const [line = ""] = text.split("\n");
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** `1.2 MB`, in powers of 1000. */
export function bytesText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  const at = Math.min(units.length, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1_000 ** at).toFixed(at === 1 ? 0 : 1)} ${units[at - 1]}`;
}
