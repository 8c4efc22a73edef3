import Table from "cli-table3";
import type { Colors, Output } from "./terminal.ts";

/** Rows under their titles, with one line below the titles and none between the rows. */
export function table(head: readonly string[], rows: readonly (readonly string[])[], { colors }: Output): string {
  const drawn = new Table({
    head: head.map((title) => colors.dim(title)),
    style: { head: [], border: colors.isColorSupported ? ["gray"] : [] },
  });
  drawn.push(...rows.map((row) => [...row]));
  const lines = drawn.toString().split("\n");
  return lines.filter((line, index) => index === 2 || !line.includes("├")).join("\n");
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
