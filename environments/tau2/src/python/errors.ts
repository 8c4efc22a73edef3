/** The exception classes of Python that tools and the core raise. */
export type PyErrorKind =
  | "ValueError"
  | "TypeError"
  | "KeyError"
  | "IndexError"
  | "AttributeError"
  | "ZeroDivisionError"
  | "OverflowError"
  | "SyntaxError"
  | "AssertionError"
  | "JSONDecodeError"
  | "ValidationError";

/**
 * An exception that the reference would raise; `message` is its exact `str()`, because agents see it.
 * Any other thrown error is a bug in this environment and is never returned as a tool's result.
 */
export class PyError extends Error {
  readonly kind: PyErrorKind;
  constructor(kind: PyErrorKind, message: string) {
    super(message);
    this.kind = kind;
    this.name = kind;
  }
}

export const valueError = (message: string): PyError => new PyError("ValueError", message);
export const typeError = (message: string): PyError => new PyError("TypeError", message);
export const attributeError = (type: string, name: string): PyError =>
  new PyError("AttributeError", `'${type}' object has no attribute '${name}'`);
