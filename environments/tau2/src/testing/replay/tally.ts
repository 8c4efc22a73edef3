/** Counts matching cases by kind, and keeps the first differences. */
export class Tally {
  readonly #kinds = new Map<string, { matching: number; total: number }>();
  readonly #differences: string[] = [];
  readonly #notes = new Map<string, number>();
  readonly #shown: number;

  constructor(shown = 5) {
    this.#shown = shown;
  }

  /** Counts a case; both values are compared as JSON. */
  compare(kind: string, where: string, got: unknown, wanted: unknown): void {
    const left = printed(got);
    const right = printed(wanted);
    this.count(kind, left === right, () => `${where}\n      got    ${shorten(left)}\n      wanted ${shorten(right)}`);
  }

  count(kind: string, isMatch: boolean, difference: () => string): void {
    const counts = this.#kinds.get(kind) ?? { matching: 0, total: 0 };
    this.#kinds.set(kind, { matching: counts.matching + (isMatch ? 1 : 0), total: counts.total + 1 });
    if (!isMatch && this.#differences.length < this.#shown) this.#differences.push(`${kind}: ${difference()}`);
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
    const sum = (pick: (counts: { matching: number; total: number }) => number): number =>
      all.reduce((total, counts) => total + pick(counts), 0);
    const lines = [`${title}: ${sum(({ matching }) => matching)} of ${sum(({ total }) => total)} match`];
    for (const [kind, { matching, total }] of this.#kinds) lines.push(`  ${kind}: ${matching} of ${total} match`);
    for (const [reason, cases] of this.#notes) lines.push(`  skipped: ${cases} (${reason})`);
    for (const difference of this.#differences) lines.push(`    ${difference}`);
    return lines.join("\n");
  }
}

/** The vectors have the URL of another pydantic version; nothing else differs. */
function printed(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return (text ?? "undefined").replace(/errors\.pydantic\.dev\/2\.\d+\//g, "errors.pydantic.dev/");
}

function shorten(text: string): string {
  return text.length <= 600 ? text : `${text.slice(0, 400)} … ${text.slice(-180)}`;
}
