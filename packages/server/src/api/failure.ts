import { errorTable, isPlatformError, messageOf, PlatformError, retryAfterOf } from "@aenv/contract";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { ShownText } from "../config/shown-text.ts";
import { endResponse } from "../http/drain.ts";
import { diskError, diskProblemOf } from "../operations/disk.ts";

/** Sends an error response. If the request has not fully arrived, the connection is closed afterwards. */
export function sendFailure(error: unknown, request: FastifyRequest, reply: FastifyReply, shown: ShownText): void {
  const { code, message, retryable, details } = toClientError(error, request, shown);
  const status = errorTable[code].status;
  const retryAfter = retryAfterOf({ status, retryable, details });
  const body = { success: false, code: status, message, data: null, error: { code, message, retryable, requestId: request.id } };
  if (request.raw.complete) {
    if (retryAfter !== null) reply.header("retry-after", retryAfter);
    void reply.code(status).send(body);
    return;
  }
  reply.hijack();
  const { raw } = reply;
  if (raw.headersSent || raw.destroyed) return void raw.destroy();
  const text = JSON.stringify(body);
  raw.shouldKeepAlive = false;
  raw.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    ...(retryAfter !== null && { "retry-after": retryAfter }),
  });
  endResponse(raw, text);
}

export type ClientError = Pick<PlatformError, "code" | "message" | "retryable" | "details">;

/** The part of an error that clients may see. */
export function toClientError(error: unknown, request: Pick<FastifyRequest, "id" | "log">, shown: ShownText): ClientError {
  const { code, message, retryable, details } = toPlatformError(error, request);
  return { code, message: shown(message), retryable, details };
}

/** Unexpected errors become `internal`; their details go to the log. */
function toPlatformError(error: unknown, request: Pick<FastifyRequest, "id" | "log">): PlatformError {
  if (isPlatformError(error) && error.code !== "internal") return error;
  const disk = diskProblemOf(error);
  if (disk !== null) {
    request.log.error({ err: error }, `the disk is ${disk}`);
    return diskError(disk, error);
  }
  if (isPlatformError(error)) return error;
  const code = (error as { code?: string }).code ?? "";
  if (code === "FST_ERR_BAD_URL" || code === "FST_ERR_MAX_PARAM_LENGTH")
    return new PlatformError("route.not_found", `the path cannot be read: ${messageOf(error)}`);
  if (code.startsWith("FST_ERR_CTP")) return new PlatformError("request.invalid", `Invalid request format: ${messageOf(error)}`);
  // An unexpected error may contain what clients must not read, so it goes to the log only.
  request.log.error({ err: error }, "unexpected failure");
  return new PlatformError("internal", `an internal error; the server's log has the details under request ${request.id}`);
}
