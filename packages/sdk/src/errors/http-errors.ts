import { AnswerLimitError } from "./errors.ts";

/** Far more than an error has to say. The status counts, even if the text is longer. */
const MAX_ERROR_BYTES = 1024 * 1024;

/** The connection failed. `wasSent` is false only if the request was certainly not sent; `isRefused` is true if nothing listens at the address. */
export class TransportError extends Error {
  override readonly name = "TransportError";
  readonly wasSent: boolean;
  readonly isTimeout: boolean;
  readonly isRefused: boolean;

  constructor(
    message: string,
    options: { readonly wasSent: boolean; readonly isTimeout?: boolean; readonly isRefused?: boolean; readonly cause?: unknown },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.wasSent = options.wasSent;
    this.isTimeout = options.isTimeout ?? false;
    this.isRefused = options.isRefused ?? false;
  }
}

/** True when every attempt to connect was refused. A browser does not report this. */
export function isRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isRefused);
  return (error as { code?: unknown }).code === "ECONNREFUSED" || isRefused(error.cause);
}

/** A response with a status other than 2xx, with its body. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: number;
  readonly body: string;
  readonly retryAfter: string | null;

  constructor(status: number, body: string, retryAfter: string | null) {
    super(`HTTP ${status}`);
    this.status = status;
    this.body = body;
    this.retryAfter = retryAfter;
  }

  /** The error for a response whose body has not been read yet. */
  static async of(answer: UnreadAnswer): Promise<StatusError> {
    const body = await answer.text(MAX_ERROR_BYTES).catch((error: unknown) => {
      if (error instanceof AnswerLimitError) return `(an error text of more than ${MAX_ERROR_BYTES} bytes, which was not read)`;
      throw error;
    });
    return new StatusError(answer.status, body, answer.header("retry-after"));
  }
}

interface UnreadAnswer {
  readonly status: number;
  header(name: string): string | null;
  text(maxBytes: number): Promise<string>;
}
