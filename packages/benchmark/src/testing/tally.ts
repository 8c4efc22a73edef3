/** Counts matching cases by kind, and keeps the first differences. */
export class Tally {
  readonly #kinds = new Map<string, { matching: number; total: number }>();
  readonly #differences: string[] = [];
  readonly #notes = new Map<string, number>();
  readonly #printed: (value: unknown) => string;

  /** Two values match if they are printed alike: by default, as JSON. */
  constructor(printed: (value: unknown) => string = (value) => JSON.stringify(value) ?? "undefined") {
    this.#printed = printed;
  }

  compare(kind: string, where: string, got: unknown, wanted: unknown): void {
    const [left, right] = [this.#printed(got), this.#printed(wanted)];
    const counts = this.#kinds.get(kind) ?? { matching: 0, total: 0 };
    this.#kinds.set(kind, { matching: counts.matching + Number(left === right), total: counts.total + 1 });
    if (left === right || this.#differences.length >= MAX_SHOWN) return;
    const from = Math.max(0, commonLength(left, right) - CONTEXT);
    this.#differences.push(`${kind}: ${cut(where, 0)}\n      got    ${cut(left, from)}\n      wanted ${cut(right, from)}`);
  }

  /** Cases that cannot be tested here, and why; they are not counted. */
  skip(reason: string, cases = 1): void {
    this.#notes.set(reason, (this.#notes.get(reason) ?? 0) + cases);
  }

  get allMatch(): boolean {
    return this.#kinds.size > 0 && [...this.#kinds.values()].every(({ matching, total }) => matching === total);
  }

  print(title: string): string {
    const all = [...this.#kinds.values()];
    const sum = (key: "matching" | "total"): number => all.reduce((total, counts) => total + counts[key], 0);
    const lines = [`${title}: ${sum("matching")} of ${sum("total")} match`];
    for (const [kind, { matching, total }] of [...this.#kinds].sort()) lines.push(`  ${kind}: ${matching} of ${total} match`);
    for (const [reason, cases] of this.#notes) lines.push(`  skipped: ${cases} (${reason})`);
    for (const difference of this.#differences) lines.push(`    ${difference}`);
    return lines.join("\n");
  }
}

const MAX_SHOWN = 5;
/** Characters before the first difference, and of each value. */
const CONTEXT = 120;
const LENGTH = 500;

function commonLength(left: string, right: string): number {
  let at = 0;
  while (at < left.length && left[at] === right[at]) at++;
  return at;
}

function cut(text: string, from: number): string {
  return `${from > 0 ? "…" : ""}${text.slice(from, from + LENGTH)}${text.length > from + LENGTH ? "…" : ""}`;
}
