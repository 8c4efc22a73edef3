/** A JSON-RPC error answer. */
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

/** The other side answered 2xx, but not what was asked for. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  /** True for an empty 200: the original's gateway answers so when it did not see its proxy header. */
  readonly isEmpty: boolean;

  constructor(message: string, isEmpty = false) {
    super(message);
    this.isEmpty = isEmpty;
  }
}
