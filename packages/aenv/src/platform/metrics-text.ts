/** One value of a metric. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** The text format of Prometheus. */
export class MetricsText {
  readonly #samples = new Map<string, Sample[]>();

  constructor(text: string) {
    for (const line of text.split("\n")) {
      const [, name, labels = "", value = ""] = LINE.exec(line) ?? [];
      if (name === undefined) continue;
      const sample = {
        name,
        labels: Object.fromEntries([...labels.matchAll(LABEL)].map(([, key, one]) => [key, one])),
        value: Number(value),
      };
      const known = this.#samples.get(name);
      if (known === undefined) this.#samples.set(name, [sample]);
      else known.push(sample);
    }
  }

  /** The sum of all values of a metric that match; 0 if there are none. */
  sum(name: string, matches: (labels: Sample["labels"]) => boolean = () => true): number {
    return (this.#samples.get(name) ?? []).reduce((sum, one) => (matches(one.labels) ? sum + one.value : sum), 0);
  }

  /** The values of a metric by one of its labels. */
  by(name: string, label: string): Record<string, number> {
    const found: Record<string, number> = {};
    for (const { labels, value } of this.#samples.get(name) ?? []) found[labels[label] ?? ""] = (found[labels[label] ?? ""] ?? 0) + value;
    return found;
  }
}
