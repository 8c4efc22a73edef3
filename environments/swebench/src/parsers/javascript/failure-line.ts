import { Pattern } from "../../python/pattern.ts";

const RESULT = "FAILED";

/**
 * Lines of karma: a literal, a pattern, the name of a test, and `FAILED` at the end of the line. Finds what the pattern
 * LITERAL HEAD `(.*)FAILED` END finds, faster. Of several matches of the head only the shortest counts: a longer one leaves less of the
 * same line.
 */
export class FailureLine {
  readonly #literal: string;
  readonly #head: Pattern;
  readonly #end: "\n" | "$";

  /** The end `\n` is a part of the match; `$` is also the end of the text. */
  constructor(literal: string, head: string, end: "\n" | "$") {
    this.#literal = literal;
    this.#head = new Pattern(head);
    this.#end = end;
  }

  eachName(text: string, visit: (name: string) => void): void {
    const literal = this.#literal;
    for (let at = text.indexOf(literal); at >= 0; at = text.indexOf(literal, at)) {
      at += literal.length;
      const start = this.#head.endAt(text, at);
      if (start < 0) continue;
      const newline = text.indexOf("\n", start);
      if (newline < 0 && this.#end === "\n") return;
      const end = (newline < 0 ? text.length : newline) - RESULT.length;
      if (end < start || !text.startsWith(RESULT, end)) continue;
      visit(text.slice(start, end));
      at = end + RESULT.length;
    }
  }
}
