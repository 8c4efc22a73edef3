export interface ApiErrorOptions {
  readonly param?: string;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error in the format of the API. */
export class ApiError extends Error {
  readonly status: number;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, { param, code, headers }: ApiErrorOptions = {}) {
    super(message);
    this.status = status;
    this.type = status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error";
    this.param = param ?? null;
    this.code = code ?? null;
    this.headers = headers ?? {};
  }
}
