/**
 * An exception that the reference, a Python program, would raise. `kind` is the name of its class. Where agents see the message, it is the
 * exact `str()` of the exception. Any other thrown error is a bug of the environment.
 */
export class PyError extends Error {
  readonly kind: string;

  constructor(kind: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
    this.name = kind;
  }
}

export const valueError = (message: string): PyError => new PyError("ValueError", message);
export const typeError = (message: string): PyError => new PyError("TypeError", message);
export const attributeError = (type: string, name: string): PyError =>
  new PyError("AttributeError", `'${type}' object has no attribute '${name}'`);
