import { type ErrorCode, isErrorCode, isObject, parseBoundedJson } from "@aenv/contract";
import type { StatusError } from "./http-errors.ts";

/** An error response, parsed. All services and all envelopes give this one shape. */
export interface Failure {
  readonly message: string;
  readonly code: ErrorCode;
  /** False when the code was derived from the HTTP status, because the body has none. */
  readonly isNamed: boolean;
  readonly retryable?: boolean;
  readonly requestId?: string;
}

const PREVIEW_LENGTH = 200;

const CODES: Readonly<Record<number, ErrorCode>> = {
  400: "request.invalid",
  401: "access.unauthenticated",
  403: "access.denied",
  404: "route.not_found",
  405: "route.method_not_allowed",
  413: "request.too_large",
  422: "request.invalid",
  429: "quota.exceeded",
  501: "instance.unsupported",
  502: "network.failed",
  503: "network.failed",
  504: "request.timeout",
};

/** Parses an error response; `notFound` is the code for a 404 on this route. */
export function readFailure(error: StatusError, notFound: ErrorCode = "route.not_found"): Failure {
  const parsed = readBody(error.body);
  const message = parsed.message ?? (preview(error.body) || `HTTP ${error.status} without a body`);
  if (parsed.code !== undefined) return { ...parsed, message, code: parsed.code, isNamed: true };
  return { ...parsed, message, code: guessCode(error.status, message, notFound), isNamed: false };
}

/** The code for a response without one: first by the original's known messages, then by the status. */
function guessCode(status: number, message: string, notFound: ErrorCode): ErrorCode {
  // The original's control plane wraps errors of its engine and its hub into a 500.
  if (status === 500 && message.includes("status: 404")) {
    return message.includes("find environment") ? "environment.not_found" : notFound;
  }
  if (status === 403 && message.includes("exceeds limit")) return "quota.exceeded";
  if (status === 403 && /\breleased\b/.test(message)) return "environment.released";
  if (status === 404) return notFound;
  return CODES[status] ?? (status >= 500 ? "internal" : "request.invalid");
}

interface BodyInfo {
  readonly message?: string;
  readonly code?: ErrorCode;
  readonly retryable?: boolean;
  readonly requestId?: string;
}

/**
 * Parses four body formats: the control envelope `{message, error: {code}}`, the sandbox's `{error: "text", errorInfo}`,
 * the gateway's `{error: "text", details}`, and JSON-RPC's `{error: {message, data: {code}}}`.
 */
function readBody(body: string): BodyInfo {
  let json: unknown;
  try {
    json = parseBoundedJson(body);
  } catch {
    return {};
  }
  if (!isObject(json)) return {};
  const { error, errorInfo } = json;
  const message = firstText(json.message, json.errorMessage, error, isObject(error) ? error.message : undefined);
  const details = typeof error === "string" && typeof json.details === "string" ? `: ${json.details}` : "";
  const info = [error, errorInfo, isObject(error) ? error.data : undefined].find((one) => isObject(one) && isErrorCode(one.code));
  return { ...(message !== undefined && { message: message + details }), ...(isObject(info) && readInfo(info)) };
}

/** The structured part of an error body: code, whether a retry may help, and the request's id. */
export function readInfo(info: Readonly<Record<string, unknown>>): Omit<BodyInfo, "message"> {
  return {
    ...(isErrorCode(info.code) && { code: info.code }),
    ...(typeof info.retryable === "boolean" && { retryable: info.retryable }),
    ...(typeof info.requestId === "string" && { requestId: info.requestId }),
  };
}

function firstText(...values: unknown[]): string | undefined {
  return values.find((value): value is string => typeof value === "string" && value !== "");
}

export function preview(text: string): string {
  const line = text.trim();
  return line.length > PREVIEW_LENGTH ? `${line.slice(0, PREVIEW_LENGTH)}...` : line;
}
