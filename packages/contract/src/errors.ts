/**
 * Every way the platform itself can fail: one line per code.
 * `status` is the HTTP status of the response, `retryable` whether the same request may succeed later.
 * What goes wrong inside a tool is not here: that is data for the agent (`isError: true`).
 */
export const errorTable = {
  "request.invalid": { status: 400, retryable: false, meaning: "the request does not have the shape that this route takes" },
  "request.too_large": { status: 413, retryable: false, meaning: "the body is larger than the configured limit" },
  "request.too_slow": { status: 408, retryable: true, meaning: "the body did not arrive in time" },
  "request.forbidden_origin": { status: 403, retryable: false, meaning: "the Host or Origin header does not belong to this server" },
  "request.conflict": { status: 409, retryable: false, meaning: "the idempotency key was used for another request" },
  "route.not_found": { status: 404, retryable: false, meaning: "no such path" },
  "route.method_not_allowed": { status: 405, retryable: false, meaning: "the path exists, but not with this method" },
  "access.denied": { status: 403, retryable: false, meaning: "the caller may not use this route" },
  "access.token_not_found": { status: 404, retryable: false, meaning: "no token of this id" },
  "access.unauthenticated": { status: 401, retryable: false, meaning: "a valid token is needed" },
  "environment.invalid": { status: 400, retryable: false, meaning: "the environment's definition or config.json is wrong" },
  "environment.not_found": { status: 404, retryable: false, meaning: "no environment of this name and version" },
  "environment.unhealthy": { status: 503, retryable: true, meaning: "the environment runs but says that it is not healthy" },
  "environment.exists": { status: 409, retryable: false, meaning: "this version is published already" },
  "environment.released": { status: 403, retryable: false, meaning: "a released version does not change any more" },
  "environment.in_use": { status: 409, retryable: false, meaning: "instances of this version still run" },
  "bundle.invalid": { status: 400, retryable: false, meaning: "the archive is damaged, unsafe, or not what its digest says" },
  "bundle.not_found": { status: 404, retryable: false, meaning: "no archive of this digest has been uploaded" },
  "bundle.damaged": { status: 500, retryable: false, meaning: "the stored archive is not what was uploaded" },
  "ticket.not_found": { status: 404, retryable: false, meaning: "the upload or download link is unknown, used or too old" },
  "link.not_found": {
    status: 404,
    retryable: false,
    meaning: "the link to a sandbox's port is unknown or has expired, or its instance has ended",
  },
  "instance.not_found": { status: 404, retryable: false, meaning: "no such instance, or not yours" },
  "instance.exists": { status: 409, retryable: false, meaning: "an instance of this id is there already" },
  "instance.starting": { status: 503, retryable: true, meaning: "the instance is not ready yet" },
  "instance.gone": { status: 410, retryable: false, meaning: "the instance has ended" },
  "instance.failed": { status: 502, retryable: false, meaning: "the instance did not start, or broke" },
  "instance.setup_failed": { status: 500, retryable: false, meaning: "the environment's setup raised an error" },
  "instance.start_failed": { status: 502, retryable: true, meaning: "the instance did not come up" },
  "instance.start_timeout": { status: 504, retryable: true, meaning: "the instance did not become ready in time" },
  "instance.unsupported": { status: 501, retryable: false, meaning: "this environment or server cannot do that with an instance" },
  "service.not_found": { status: 404, retryable: false, meaning: "no such service, or not yours" },
  "service.exists": { status: 409, retryable: false, meaning: "a service of this name is there already" },
  "service.unavailable": { status: 503, retryable: true, meaning: "none of the service's replicas runs now" },
  "session.not_found": { status: 404, retryable: false, meaning: "no such MCP session, or the replica that held it is gone" },
  "sandbox.start_failed": { status: 502, retryable: true, meaning: "the sandbox did not come up" },
  "sandbox.lost": { status: 502, retryable: true, meaning: "the sandbox is gone or does not answer" },
  "sandbox.answer_too_large": { status: 502, retryable: false, meaning: "the sandbox answered with more than the server reads of it" },
  "sandbox.destroy_failed": { status: 500, retryable: true, meaning: "the sandbox could not be ended, or its files not be removed" },
  "sandbox.exists": { status: 409, retryable: false, meaning: "a sandbox of this id is there already" },
  "sandbox.bound": { status: 409, retryable: false, meaning: "the process has taken an environment already" },
  "sandbox.port_closed": { status: 502, retryable: true, meaning: "no process of the sandbox listens on this port" },
  "sandbox.unsupported": { status: 501, retryable: false, meaning: "this engine cannot do that, or not on this system" },
  "task.not_found": { status: 404, retryable: false, meaning: "the environment has no task of this id" },
  "task.list_failed": { status: 500, retryable: false, meaning: "the environment's list of tasks raised an error" },
  "tool.not_found": { status: 404, retryable: false, meaning: "the environment has no tool of this name" },
  "tool.failed": { status: 500, retryable: false, meaning: "the call failed after it left; it may have run" },
  "tool.timeout": { status: 504, retryable: false, meaning: "the call took longer than allowed; it may have run" },
  "function.not_found": { status: 404, retryable: false, meaning: "the environment has no function of this name" },
  "function.failed": { status: 500, retryable: false, meaning: "the function raised an error" },
  "reward.missing": { status: 404, retryable: false, meaning: "the environment defines no reward" },
  "reward.failed": { status: 500, retryable: false, meaning: "a reward function raised an error or gave no number" },
  "health.failed": { status: 500, retryable: true, meaning: "the health check itself raised an error" },
  "snapshot.unsupported": { status: 501, retryable: false, meaning: "the state cannot be written down as a value" },
  "snapshot.invalid": { status: 400, retryable: false, meaning: "the snapshot is damaged or of another environment" },
  "store.unavailable": { status: 503, retryable: true, meaning: "the store cannot be reached or cannot write; a change may have happened" },
  "store.damaged": { status: 500, retryable: false, meaning: "what the store holds cannot be read" },
  "store.invalid": { status: 500, retryable: false, meaning: "the store's address is wrong, or it holds what this server does not know" },
  "quota.exceeded": { status: 429, retryable: true, meaning: "a limit of this owner or server is reached" },
  "server.locked": { status: 409, retryable: false, meaning: "another server uses the same home" },
  "server.draining": { status: 503, retryable: true, meaning: "the server is shutting down" },
  "network.failed": { status: 502, retryable: true, meaning: "the other side could not be reached, or the connection broke" },
  "request.timeout": { status: 504, retryable: true, meaning: "no answer came in time" },
  "request.cancelled": { status: 499, retryable: false, meaning: "the caller gave up" },
  "circuit.open": { status: 503, retryable: true, meaning: "too many calls in a row have failed; waiting before the next" },
  internal: { status: 500, retryable: false, meaning: "a fault of ours" },
} as const satisfies Record<string, { status: number; retryable: boolean; meaning: string }>;

export type ErrorCode = keyof typeof errorTable;

export interface PlatformErrorOptions {
  readonly cause?: unknown;
  /** Facts for programs: ids, limits, field names. Never a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly requestId?: string;
  /** Overrides the table, for what the other side has said. */
  readonly retryable?: boolean;
}

/** The platform's one error class: branch on `code`, never on the message. */
export class PlatformError extends Error {
  override readonly name: string = "PlatformError";
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly details: Readonly<Record<string, unknown>>;
  readonly requestId: string | undefined;

  constructor(code: ErrorCode, message: string, options: PlatformErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? errorTable[code].retryable;
    this.details = options.details ?? {};
    this.requestId = options.requestId;
  }

  get status(): number {
    return errorTable[this.code].status;
  }
}

/** True for a platform error, and, if codes are given, only for those codes. */
export function isPlatformError(error: unknown, ...codes: ErrorCode[]): error is PlatformError {
  return error instanceof PlatformError && (codes.length === 0 || codes.includes(error.code));
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(errorTable, value);
}

/** What a thrown value says of itself, without its stack. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  return typeof error === "string" ? error : String(error);
}
