/** Counts matching cases by kind, and keeps the first differences. */
export class Tally {
  readonly #kinds = new Map<string, { matching: number; total: number }>();
  readonly #differences: string[] = [];
  readonly #shown: number;

  constructor(shown = 5) {
    this.#shown = shown;
  }

  /** Counts a case; both values are compared as JSON. */
  compare(kind: string, where: string, got: unknown, wanted: unknown): void {
    const left = JSON.stringify(got) ?? "undefined";
    const right = JSON.stringify(wanted) ?? "undefined";
    const counts = this.#kinds.get(kind) ?? { matching: 0, total: 0 };
    const isMatch = left === right;
    this.#kinds.set(kind, { matching: counts.matching + (isMatch ? 1 : 0), total: counts.total + 1 });
    if (!isMatch && this.#differences.length < this.#shown) {
      const [got, wanted] = aroundDifference(left, right);
      this.#differences.push(`${kind}: ${where}\n      got    ${got}\n      wanted ${wanted}`);
    }
  }

  get allMatch(): boolean {
    return this.#kinds.size > 0 && [...this.#kinds.values()].every(({ matching, total }) => matching === total);
  }

  print(title: string): string {
    const all = [...this.#kinds.values()];
    const sum = (key: "matching" | "total"): number => all.reduce((total, counts) => total + counts[key], 0);
    const lines = [`${title}: ${sum("matching")} of ${sum("total")} match`];
    for (const [kind, { matching, total }] of [...this.#kinds].sort()) lines.push(`  ${kind}: ${matching} of ${total} match`);
    for (const difference of this.#differences) lines.push(`    ${difference}`);
    return lines.join("\n");
  }
}

const CONTEXT = 120;
const LENGTH = 500;

function aroundDifference(left: string, right: string): [string, string] {
  let at = 0;
  while (at < left.length && left[at] === right[at]) at++;
  const from = Math.max(0, at - CONTEXT);
  const cut = (text: string): string => `${from > 0 ? "…" : ""}${text.slice(from, from + LENGTH)}${text.length > from + LENGTH ? "…" : ""}`;
  return [cut(left), cut(right)];
}
