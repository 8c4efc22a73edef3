/** A JSON-RPC error response. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** A 2xx response that is not a valid response to the request. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  /** True for an empty 200, which the original's gateway sends when the proxy header is missing. */
  readonly isEmpty: boolean;

  constructor(message: string, isEmpty = false) {
    super(message);
    this.isEmpty = isEmpty;
  }
}
