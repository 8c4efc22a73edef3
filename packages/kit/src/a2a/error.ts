import { isPlatformError, messageOf } from "@aenv/contract";
import { ConversationFault } from "../agent/fault.ts";

interface ErrorKind {
  /** The code in JSON-RPC. */
  readonly code: number;
  /** The status over HTTP, and its name in gRPC. */
  readonly http: number;
  readonly status: string;
}

/** The errors of A2A, and those of JSON-RPC. */
export const errorKinds = {
  TASK_NOT_FOUND: { code: -32_001, http: 404, status: "NOT_FOUND" },
  TASK_NOT_CANCELABLE: { code: -32_002, http: 400, status: "FAILED_PRECONDITION" },
  PUSH_NOTIFICATION_NOT_SUPPORTED: { code: -32_003, http: 400, status: "FAILED_PRECONDITION" },
  UNSUPPORTED_OPERATION: { code: -32_004, http: 400, status: "FAILED_PRECONDITION" },
  CONTENT_TYPE_NOT_SUPPORTED: { code: -32_005, http: 400, status: "INVALID_ARGUMENT" },
  VERSION_NOT_SUPPORTED: { code: -32_009, http: 400, status: "FAILED_PRECONDITION" },
  PARSE: { code: -32_700, http: 400, status: "INVALID_ARGUMENT" },
  REQUEST: { code: -32_600, http: 400, status: "INVALID_ARGUMENT" },
  METHOD: { code: -32_601, http: 404, status: "NOT_FOUND" },
  PARAMS: { code: -32_602, http: 400, status: "INVALID_ARGUMENT" },
  BUSY: { code: -32_603, http: 429, status: "RESOURCE_EXHAUSTED" },
  INTERNAL: { code: -32_603, http: 500, status: "INTERNAL" },
} as const satisfies Record<string, ErrorKind>;

export type A2aErrorKind = keyof typeof errorKinds;

/** Kinds that JSON-RPC defines, and a limit of ours: they have no name in A2A. */
const WITHOUT_REASON: ReadonlySet<A2aErrorKind> = new Set(["PARSE", "REQUEST", "METHOD", "PARAMS", "BUSY", "INTERNAL"]);

export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

/** A refused request of A2A. */
export class A2aError extends Error {
  override readonly name = "A2aError";
  readonly kind: A2aErrorKind;
  readonly violations: readonly FieldViolation[];
  /** The code of the platform's failure, if there is one. */
  readonly platformCode: string | null;

  constructor(kind: A2aErrorKind, message: string, violations: readonly FieldViolation[] = [], platformCode: string | null = null) {
    super(message);
    this.kind = kind;
    this.violations = violations;
    this.platformCode = platformCode;
  }

  get details(): readonly object[] {
    if (this.violations.length > 0) return [{ "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations: this.violations }];
    const info = { "@type": "type.googleapis.com/google.rpc.ErrorInfo" };
    if (!WITHOUT_REASON.has(this.kind)) return [{ ...info, reason: this.kind, domain: "a2a-protocol.org", metadata: {} }];
    return this.platformCode === null ? [] : [{ ...info, reason: this.platformCode, domain: "aenv", metadata: {} }];
  }
}

export function wrongField(field: string, description: string): A2aError {
  return new A2aError("PARAMS", `Invalid parameters: ${field} ${description}`, [{ field, description }]);
}

/** The error in the protocol's terms. */
export function toA2aError(error: unknown, ended: "UNSUPPORTED_OPERATION" | "TASK_NOT_CANCELABLE" = "UNSUPPORTED_OPERATION"): A2aError {
  if (error instanceof A2aError) return error;
  if (error instanceof ConversationFault) {
    if (error.kind === "task_not_found") return new A2aError("TASK_NOT_FOUND", "Task not found");
    if (error.kind === "task_ended") return new A2aError(ended, error.message);
    return error.kind === "wrong_context" ? wrongField("contextId", "is not that of the task") : new A2aError("BUSY", error.message);
  }
  if (isPlatformError(error, "request.too_large")) return new A2aError("REQUEST", error.message);
  return new A2aError("INTERNAL", messageOf(error), [], isPlatformError(error) ? error.code : null);
}

export function jsonRpcError(id: string | number | null, error: A2aError): object {
  const { details, message } = error;
  return {
    jsonrpc: "2.0",
    id,
    error: { code: errorKinds[error.kind].code, message, ...(details.length > 0 && { data: details }) },
  };
}

export function httpError(error: A2aError): { readonly status: number; readonly body: object } {
  const { http, status } = errorKinds[error.kind];
  return { status: http, body: { error: { code: http, status, message: error.message, details: error.details } } };
}
