/** A log may have lines of any length. */
const MAX_CHARACTERS = 16 * 1_024 ** 2;

/** The newest lines of a log that is read from its start or from its middle: at most `count`, and no more than fit into memory. */
export class LastLines {
  readonly #count: number;
  #lines: string[] = [];
  #characters = 0;

  constructor(count: number) {
    this.#count = count;
  }

  push(line: string): void {
    this.#lines.push(line);
    this.#characters += line.length;
    // In large steps: to remove the first of many lines takes as long as to move them all.
    if (this.#lines.length > 2 * this.#count || this.#characters > 2 * MAX_CHARACTERS) this.#trim();
  }

  get lines(): string[] {
    this.#trim();
    return this.#lines;
  }

  #trim(): void {
    const all = this.#lines;
    let from = all.length;
    let characters = 0;
    while (from > 0 && all.length - from < this.#count) {
      const { length } = all[from - 1] as string;
      if (characters + length > MAX_CHARACTERS) break;
      characters += length;
      from--;
    }
    this.#lines = all.slice(from);
    this.#characters = characters;
  }
}
