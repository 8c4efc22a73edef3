import { indentOf, strip } from "../../python/text.ts";

/** The names of the suites that enclose the current line, by indentation. */
export class IndentStack {
  readonly #entries: { readonly name: string; readonly indent: number }[] = [];

  /** A line that is not indented changes nothing; a line of whitespace is a suite without a name. */
  add(line: string): void {
    const indent = indentOf(line);
    if (indent === 0) return;
    while ((this.#entries.at(-1)?.indent ?? -1) >= indent) this.#entries.pop();
    this.#entries.push({ name: strip(line), indent });
  }

  get names(): string[] {
    return this.#entries.map(({ name }) => name);
  }
}
