/** Counts matching cases by kind, and keeps the first differences. */
export class Tally {
  readonly #kinds = new Map<string, { matching: number; total: number }>();
  readonly #differences: string[] = [];
  readonly #shown: number;

  constructor(shown = 5) {
    this.#shown = shown;
  }

  /** Counts a case. Both values are compared as JSON, without regard to the order of keys. */
  compare(kind: string, where: string, got: unknown, wanted: unknown): void {
    const [left, right] = [printed(got), printed(wanted)];
    const counts = this.#kinds.get(kind) ?? { matching: 0, total: 0 };
    this.#kinds.set(kind, { matching: counts.matching + Number(left === right), total: counts.total + 1 });
    if (left === right || this.#differences.length >= this.#shown) return;
    this.#differences.push(`${kind}: ${shorten(where)}\n      got    ${shorten(left)}\n      wanted ${shorten(right)}`);
  }

  get allMatch(): boolean {
    return this.#kinds.size > 0 && [...this.#kinds.values()].every(({ matching, total }) => matching === total);
  }

  print(title: string): string {
    const all = [...this.#kinds.values()];
    const sum = (pick: (counts: { matching: number; total: number }) => number): number => all.reduce((total, one) => total + pick(one), 0);
    const lines = [`${title}: ${sum(({ matching }) => matching)} of ${sum(({ total }) => total)} match`];
    for (const [kind, { matching, total }] of this.#kinds) lines.push(`  ${kind}: ${matching} of ${total} match`);
    for (const difference of this.#differences) lines.push(`    ${difference}`);
    return lines.join("\n");
  }
}

function printed(value: unknown): string {
  return JSON.stringify(sorted(value)) ?? "undefined";
}

function sorted(value: unknown): unknown {
  if (Object.is(value, -0)) return 0;
  if (typeof value === "number" && !Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return entries.map(([key, inner]) => [key, sorted(inner)]);
}

function shorten(text: string): string {
  return text.length <= 600 ? text : `${text.slice(0, 400)} … ${text.slice(-180)}`;
}
