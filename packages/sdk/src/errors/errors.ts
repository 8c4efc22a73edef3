import { type ErrorCode, PlatformError, type PlatformErrorOptions, type ReadLimitExceeded } from "@aenv/contract";

export interface AEnvErrorOptions extends PlatformErrorOptions {
  /** A code of the platform's error table; each class has a default. */
  readonly code?: ErrorCode;
}

/**
 * The base class of every error that the SDK throws. Branch on the class or on `code`.
 *
 * @example
 * try { await env.callTool("search", { query }); }
 * catch (error) { if (error instanceof ToolTimeoutError) return retryLater(); throw error; }
 */
export class AEnvError extends PlatformError {
  override readonly name: string = "AEnvError";

  constructor(message: string, options: AEnvErrorOptions = {}) {
    super(options.code ?? "internal", message, options);
  }
}

export interface ToolErrorOptions extends AEnvErrorOptions {
  readonly toolName: string;
}

/** A tool call without a result. A tool that fails gives a result with `isError`, not this error. */
export class ToolError extends AEnvError {
  override readonly name: string = "ToolError";
  readonly toolName: string;

  constructor(message: string, options: ToolErrorOptions) {
    super(message, { code: "tool.failed", ...options });
    this.toolName = options.toolName;
  }
}

/** The tool call timed out; the tool may still have run. */
export class ToolTimeoutError extends ToolError {
  override readonly name: string = "ToolTimeoutError";
  readonly timeoutMs: number;

  constructor(message: string, options: ToolErrorOptions & { readonly timeoutMs: number }) {
    super(message, { code: "tool.timeout", ...options });
    this.timeoutMs = options.timeoutMs;
  }
}

/** The server answered the call with an error; `statusCode` is the HTTP status, 200 for a JSON-RPC error. */
export class ToolServerError extends ToolError {
  override readonly name: string = "ToolServerError";
  readonly statusCode: number;

  constructor(message: string, options: ToolErrorOptions & { readonly statusCode: number }) {
    super(message, options);
    this.statusCode = options.statusCode;
  }
}

export interface EnvironmentErrorOptions extends AEnvErrorOptions {
  readonly envName?: string;
}

/** An environment or an instance could not be created, reached or used. */
export class EnvironmentError extends AEnvError {
  override readonly name: string = "EnvironmentError";
  readonly envName: string | undefined;

  constructor(message: string, options: EnvironmentErrorOptions = {}) {
    super(message, options);
    this.envName = options.envName;
  }
}

/** The circuit breaker is open: too many calls to this instance failed in a row. */
export class UnrecoverableEnvironmentError extends EnvironmentError {
  override readonly name: string = "UnrecoverableEnvironmentError";

  constructor(message: string, options: EnvironmentErrorOptions = {}) {
    super(message, { code: "circuit.open", ...options });
  }
}

/** The connection failed, was closed early, or timed out. */
export class NetworkError extends AEnvError {
  override readonly name: string = "NetworkError";

  constructor(message: string, options: AEnvErrorOptions = {}) {
    super(message, { code: "network.failed", ...options });
  }
}

/** An answer exceeded a limit of this client, so it was not read. It would be as large again, so the request is not repeated. */
export class AnswerLimitError extends AEnvError {
  override readonly name: string = "AnswerLimitError";

  constructor(request: { readonly method: string; readonly url: string }, exceeded: ReadLimitExceeded) {
    const option = exceeded.kind === "bytes" ? " (maxAnswerBytes)" : "";
    super(`${request.method} ${request.url}: the answer was not read: ${exceeded.message}, the client's limit${option}`, {
      code: "sandbox.answer_too_large",
      details: { limit: exceeded.limit, of: exceeded.kind },
      cause: exceeded,
    });
  }
}

/** A value passed to the SDK, or received by it, is not valid. */
export class ValidationError extends AEnvError {
  override readonly name: string = "ValidationError";

  constructor(message: string, options: AEnvErrorOptions = {}) {
    super(message, { code: "request.invalid", ...options });
  }
}
