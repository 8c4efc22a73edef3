import Table from "cli-table3";
import { COLOR, visible } from "./fit.ts";
import type { Colors, Output } from "./terminal.ts";

/** Columns that become narrower stay at least so wide. */
const MIN_WIDTH = 5;
const COLOR_OR_CHARACTER = new RegExp(`${COLOR}|.`, "gsu");

/**
 * Rows under their titles, with one line below the titles and none between the rows. At a terminal that is narrower than the table, cells
 * of the widest columns continue on further lines.
 */
export function table(head: readonly string[], rows: readonly (readonly string[])[], { colors, isTty, columns }: Output): string {
  const titles = head.map((title) => colors.dim(title));
  // Each cell has a space on both sides; a line is between two cells and at both ends.
  const widths = isTty ? narrowed(widthsOf([titles, ...rows]), columns - 3 * head.length - 1) : null;
  const cellsOf = (row: readonly string[]) => (widths === null ? [...row] : row.map((cell, at) => withShortWords(cell, widths[at] ?? 1)));
  const drawn = new Table({
    head: cellsOf(titles),
    style: { head: [], border: colors.isColorSupported ? ["gray"] : [] },
    ...(widths !== null && { colWidths: widths.map((width) => width + 2), wordWrap: true }),
  });
  drawn.push(...rows.map(cellsOf));
  const lines = drawn.toString().split("\n");
  return lines.filter((line, index) => index === 2 || !line.includes("├")).join("\n");
}

function widthsOf(rows: readonly (readonly string[])[]): number[] {
  const [first = []] = rows;
  return first.map((_, at) => Math.max(...rows.flatMap((row) => visible(row[at] ?? "").split("\n")).map(widthOf)));
}

/** The widths, of which the widest are cut until they fit; null if they do. */
function narrowed(widths: readonly number[], most: number): number[] | null {
  const cut = [...widths];
  const excess = widths.reduce((sum, width) => sum + width, 0) - most;
  for (let left = excess; left > 0; left--) {
    const widest = Math.max(...cut);
    if (widest <= MIN_WIDTH) break;
    cut[cut.lastIndexOf(widest)] = widest - 1;
  }
  return excess > 0 ? cut : null;
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
