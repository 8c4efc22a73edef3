/** The reference raises an exception here. `kind` is the name of its class. */
export class RaisedError extends Error {
  readonly kind: string;

  constructor(kind: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "RaisedError";
    this.kind = kind;
  }
}
