import { PythonSyntaxError } from "../../python/syntax/error.ts";
import { type Token, tokenize } from "../../python/syntax/tokens.ts";
import { ReaderError } from "../error.ts";

/** The tokens of a Python file; its syntax errors become `ReaderError`s. */
export function readTokens(source: string): readonly Token[] {
  try {
    return tokenize(source.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n"));
  } catch (error) {
    throw error instanceof PythonSyntaxError ? new ReaderError(error.message, error.line) : error;
  }
}
