import { PyError } from "@aenv/benchmark";

/** Throws the error for text that is not well-formed. */
export function notWellFormed(problem: string): never {
  throw new PyError("ParseError", `XML is not well-formed: ${problem}`);
}
