import { PythonSyntaxError } from "../../python/syntax/error.ts";
import { ExpressionParser, shallow } from "../../python/syntax/expression.ts";
import type { Node } from "../../python/syntax/node.ts";
import { type Token, tokenize } from "../../python/syntax/tokens.ts";
import { ReaderError } from "../error.ts";

/** The tokens of a Python file. */
export function readTokens(source: string): readonly Token[] {
  return located(() => tokenize(source.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n")));
}

export function parseExpression(source: string): Node {
  const parser = new ExpressionParser(readTokens(source).filter((token) => token.kind !== "newline"));
  return located(() => {
    const expression = shallow(() => parser.expression());
    parser.expectEnd();
    return expression;
  });
}

/** Parses the expressions of one logical line. */
export class LineParser extends ExpressionParser {
  /** An expression up to a comma or a closing bracket; unsupported code is skipped up to there. */
  argument(): Node {
    const start = this.position;
    const { line } = this;
    try {
      const expression = shallow(() => this.expression());
      if (this.isEnd || [",", ")", "]", "}", ":", "="].some((text) => this.is(text))) return expression;
    } catch (error) {
      if (!(error instanceof PythonSyntaxError)) throw error;
    }
    this.skip(start - this.position);
    for (let open = 0; !this.isEnd; this.skip(1)) {
      const { kind, text } = this.token;
      if (kind !== "operator") continue;
      if ("([{".includes(text)) open++;
      else if (open === 0 && (text === "," || ")]}".includes(text))) break;
      else if (")]}".includes(text)) open--;
    }
    if (this.position === start) throw this.unexpected(false);
    return { kind: "code", what: "unknown", line };
  }
}

/** Runs a parser. Its syntax errors become `ReaderError`s. */
export function located<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof PythonSyntaxError ? new ReaderError(error.message, error.line) : error;
  }
}
