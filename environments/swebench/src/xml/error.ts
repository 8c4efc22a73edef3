import { RaisedError } from "@aenv/benchmark";

/** Throws the error for text that is not well-formed. */
export function notWellFormed(problem: string): never {
  throw new RaisedError("ParseError", `XML is not well-formed: ${problem}`);
}
