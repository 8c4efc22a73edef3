import { indentOf, strip } from "@aenv/benchmark";

/** The names of the suites that enclose the current line, by indentation. */
export class IndentStack {
  readonly #entries: { readonly line: string; readonly indent: number }[] = [];
  #joined: string | null = null;

  /** A line that is not indented changes nothing; a line of whitespace is a suite without a name. */
  add(line: string, indent = indentOf(line)): void {
    if (indent === 0) return;
    const entries = this.#entries;
    while (entries.length > 0 && (entries.at(-1)?.indent ?? 0) >= indent) entries.pop();
    entries.push({ line, indent });
    this.#joined = null;
  }

  /** The names from the outside in, with ` - ` between them. */
  get joined(): string {
    this.#joined ??= this.#entries.map(({ line }) => strip(line)).join(" - ");
    return this.#joined;
  }

  /** The name of a test with those of its suites. */
  nameOf(test: string): string {
    return this.#entries.length === 0 ? test : `${this.joined} - ${test}`;
  }
}
