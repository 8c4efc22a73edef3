/**
 * Every error of the platform: one line per code.
 * `status` is the HTTP status of the response, `retryable` whether the same request may succeed later.
 * Failures inside a tool are not listed: they are data for the agent (`isError: true`).
 */
export const errorTable = {
  "request.invalid": { status: 400, retryable: false, meaning: "the request is not valid for this route" },
  "request.too_large": { status: 413, retryable: false, meaning: "the body is larger than the configured limit" },
  "request.too_slow": { status: 408, retryable: true, meaning: "the body did not arrive in time" },
  "request.forbidden_origin": { status: 403, retryable: false, meaning: "the Host or Origin header is not one that this server accepts" },
  "request.conflict": { status: 409, retryable: false, meaning: "the idempotency key was used for another request" },
  "route.not_found": { status: 404, retryable: false, meaning: "no such path" },
  "route.method_not_allowed": { status: 405, retryable: false, meaning: "the path exists, but not with this method" },
  "access.denied": { status: 403, retryable: false, meaning: "the caller may not use this route" },
  "access.token_not_found": { status: 404, retryable: false, meaning: "no token with this id" },
  "access.unauthenticated": { status: 401, retryable: false, meaning: "the request needs a valid token" },
  "environment.invalid": { status: 400, retryable: false, meaning: "the environment's definition or config.json is invalid" },
  "environment.not_found": { status: 404, retryable: false, meaning: "no environment with this name and version" },
  "environment.unhealthy": {
    status: 503,
    retryable: true,
    meaning: "the environment runs, but its health check reports that it is not healthy",
  },
  "environment.exists": { status: 409, retryable: false, meaning: "this version is already published" },
  "environment.released": { status: 403, retryable: false, meaning: "a released version cannot be changed" },
  "environment.in_use": { status: 409, retryable: false, meaning: "instances of this version are still running" },
  "bundle.invalid": { status: 400, retryable: false, meaning: "the archive is damaged or unsafe, or does not match its digest" },
  "bundle.not_found": { status: 404, retryable: false, meaning: "no archive with this digest has been uploaded" },
  "bundle.damaged": { status: 500, retryable: false, meaning: "the stored archive differs from the uploaded one" },
  "ticket.not_found": { status: 404, retryable: false, meaning: "the upload or download link is unknown, already used or expired" },
  "link.not_found": {
    status: 404,
    retryable: false,
    meaning: "the link to a sandbox's port is unknown or has expired, or its instance has ended",
  },
  "instance.not_found": { status: 404, retryable: false, meaning: "no such instance, or it belongs to another owner" },
  "instance.exists": { status: 409, retryable: false, meaning: "an instance with this id exists already" },
  "instance.starting": { status: 503, retryable: true, meaning: "the instance is not ready yet" },
  "instance.busy": {
    status: 503,
    retryable: true,
    meaning: "calls of the instance, or turns of its agent, are running, and did not end in time",
  },
  "instance.gone": { status: 410, retryable: false, meaning: "the instance has ended" },
  "instance.failed": { status: 502, retryable: false, meaning: "the instance did not start, or failed later" },
  "instance.setup_failed": { status: 500, retryable: false, meaning: "the environment's setup threw an error" },
  "instance.start_failed": { status: 502, retryable: true, meaning: "the instance could not be started" },
  "instance.start_timeout": { status: 504, retryable: true, meaning: "the instance did not become ready in time" },
  "instance.unsupported": { status: 501, retryable: false, meaning: "this environment or server does not support this operation" },
  "role.not_found": { status: 404, retryable: false, meaning: "the environment has no role with this name" },
  "service.not_found": { status: 404, retryable: false, meaning: "no such service, or it belongs to another owner" },
  "service.exists": { status: 409, retryable: false, meaning: "a service with this name exists already" },
  "service.unavailable": { status: 503, retryable: true, meaning: "no replica of the service is running" },
  "rollout.not_found": { status: 404, retryable: false, meaning: "no such rollout, or it belongs to another owner" },
  "session.not_found": { status: 404, retryable: false, meaning: "no such session, or it has ended, or it belongs to another owner" },
  "command.not_started": {
    status: 400,
    retryable: false,
    meaning: "the sandbox has no such program, working directory or user, so the command was not started",
  },
  "command.not_found": { status: 404, retryable: false, meaning: "no such command in the sandbox, or its end was reported already" },
  "command.replaced": { status: 409, retryable: false, meaning: "another client follows the command now" },
  "file.not_found": { status: 404, retryable: false, meaning: "the sandbox has no such file or folder" },
  "file.conflict": {
    status: 409,
    retryable: false,
    meaning: "the path exists already, is not empty, is not a file or folder as the operation needs, or was changed meanwhile",
  },
  "file.denied": { status: 403, retryable: false, meaning: "the sandbox does not permit this access to the path" },
  "file.out_of_range": { status: 416, retryable: false, meaning: "the file has no such part" },
  "file.no_space": { status: 507, retryable: false, meaning: "the sandbox's disk is full" },
  "sandbox.start_failed": { status: 502, retryable: true, meaning: "the sandbox could not be started" },
  "sandbox.image_unavailable": {
    status: 400,
    retryable: false,
    meaning: "the image does not exist or cannot be used, or this server may not pull it",
  },
  "sandbox.lost": { status: 502, retryable: true, meaning: "the sandbox has ended, has lost processes to the machine, or does not answer" },
  "sandbox.answer_too_large": {
    status: 502,
    retryable: false,
    meaning: "an answer exceeds a limit of its reader: of a sandbox to the server, or of an environment to a client",
  },
  "sandbox.destroy_failed": { status: 500, retryable: true, meaning: "the sandbox could not be ended, or its files could not be removed" },
  "sandbox.exists": { status: 409, retryable: false, meaning: "a sandbox with this id exists already" },
  "sandbox.bound": { status: 409, retryable: false, meaning: "the process is already bound to an environment" },
  "sandbox.port_closed": { status: 502, retryable: true, meaning: "no process of the sandbox listens on this port" },
  "sandbox.no_capacity": {
    status: 503,
    retryable: true,
    meaning: "the server or the cluster has no capacity for another sandbox now; it has when others have ended",
  },
  "sandbox.unsupported": { status: 501, retryable: false, meaning: "the engine does not support this, or not on this system" },
  "task.not_found": { status: 404, retryable: false, meaning: "the environment has no task with this id" },
  "task.invalid": { status: 400, retryable: false, meaning: "the environment cannot play the task that was given instead of an id" },
  "task.list_failed": { status: 500, retryable: false, meaning: "the environment's list of tasks threw an error" },
  "tool.not_found": { status: 404, retryable: false, meaning: "the environment has no tool with this name" },
  "tool.failed": { status: 500, retryable: false, meaning: "the call failed after it was sent; the tool may have run" },
  "tool.list_failed": { status: 502, retryable: false, meaning: "the environment did not answer with its tools as MCP describes it" },
  "tool.timeout": { status: 504, retryable: false, meaning: "the call timed out; the tool may have run" },
  "episode.failed": {
    status: 500,
    retryable: false,
    meaning: "the environment's prompt, reply, status, step reward, digest or oracle threw an error or returned an invalid value",
  },
  "function.not_found": { status: 404, retryable: false, meaning: "the environment has no function with this name" },
  "function.failed": { status: 500, retryable: false, meaning: "the function threw an error" },
  "reward.missing": { status: 404, retryable: false, meaning: "the environment defines no reward" },
  "reward.failed": { status: 500, retryable: false, meaning: "a reward function threw an error or returned no number" },
  "health.failed": { status: 500, retryable: true, meaning: "the health check threw an error" },
  "model.failed": {
    status: 502,
    retryable: true,
    meaning: "a model could not be reached, refused the request, or gave no usable answer",
  },
  "snapshot.unsupported": { status: 501, retryable: false, meaning: "the state cannot be serialized" },
  "snapshot.not_found": { status: 404, retryable: false, meaning: "no such snapshot, or it belongs to another owner" },
  "snapshot.exists": { status: 409, retryable: false, meaning: "the owner has a snapshot with this name already" },
  "snapshot.invalid": { status: 400, retryable: false, meaning: "the snapshot is damaged or belongs to another environment" },
  "store.unavailable": {
    status: 503,
    retryable: true,
    meaning: "the store cannot be reached or cannot write; the change may have been made",
  },
  "store.damaged": { status: 500, retryable: false, meaning: "the data in the store cannot be read" },
  "store.invalid": {
    status: 500,
    retryable: false,
    meaning: "the store's address is invalid, or its data has a format that this server does not support",
  },
  "quota.exceeded": { status: 429, retryable: true, meaning: "a limit of the owner or of the server is reached" },
  "server.locked": { status: 409, retryable: false, meaning: "another server uses the same home" },
  "server.draining": { status: 503, retryable: true, meaning: "the server is shutting down" },
  "network.failed": { status: 502, retryable: true, meaning: "the other side could not be reached, or the connection was lost" },
  "request.timeout": { status: 504, retryable: true, meaning: "no response arrived in time" },
  "request.cancelled": { status: 499, retryable: false, meaning: "the caller cancelled the request" },
  "circuit.open": { status: 503, retryable: true, meaning: "too many consecutive calls failed; calls are paused" },
  internal: { status: 500, retryable: false, meaning: "an unexpected error of the platform" },
} as const satisfies Record<string, { status: number; retryable: boolean; meaning: string }>;

export type ErrorCode = keyof typeof errorTable;

export interface PlatformErrorOptions {
  readonly cause?: unknown;
  /** Facts for programs: ids, limits, field names. Never a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly requestId?: string;
  /** Overrides the table, if the other side has sent a value. */
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

/** The message of a thrown value, without its stack. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  return typeof error === "string" ? error : String(error);
}
