import type { IncomingMessage, ServerResponse } from "node:http";
import { finished } from "node:stream";
import { isObject, messageOf, PlatformError, parseBoundedJson, ReadLimitExceeded, sandboxFailure } from "@aenv/contract";

/** Reads the body as text; fails as soon as it is known to be too large. */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const declared = Number(request.headers["content-length"]);
    if (declared > maxBytes) return reject(tooLarge(maxBytes));
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) reject(tooLarge(maxBytes));
      else chunks.push(chunk);
    });
    request.on("end", () => resolve((chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)).toString("utf8")));
    request.on("error", reject);
    request.on("aborted", () => reject(new PlatformError("request.cancelled", "the client disconnected before its request was complete")));
  });
}

/** Aborts when the client disconnects before it has the response. */
export function abortOnDisconnect(controller: AbortController, response: ServerResponse): void {
  const abort = () => controller.abort(new PlatformError("request.cancelled", "the client disconnected"));
  if (response.destroyed) abort();
  else response.once("close", () => response.writableFinished || abort());
}

/** A signal that fires when the client disconnects before it has the response. */
export function disconnectSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  abortOnDisconnect(controller, response);
  return controller.signal;
}

function tooLarge(maxBytes: number): PlatformError {
  return new PlatformError(
    "request.too_large",
    `the request body is larger than ${maxBytes} bytes; send less, or raise the server's maxBodyBytes`,
  );
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  sendText(response, status, JSON.stringify(body), "application/json");
}

export function sendText(response: ServerResponse, status: number, text: string, type = "text/plain; charset=utf-8"): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) });
  response.end(text);
}

/** How long the rest of a request is read before the connection is closed: closing at once may lose the response. */
const DRAIN_MS = 2_000;

/** Responds before the request is complete, and closes the connection when its rest is read or after a timeout. */
export function sendAndClose(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent || response.destroyed) return;
  const text = JSON.stringify(body);
  response.writeHead(status, { connection: "close", "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  response.write(text);
  const timer = setTimeout(() => response.end(), DRAIN_MS);
  finished(response.req.resume(), () => {
    clearTimeout(timer);
    response.end();
  });
}

/** Sends a failure in the sandbox's envelope. A status overrides the error table's, where the original's protocol differs. */
export function sendFailure(response: ServerResponse, error: unknown, status?: number): void {
  const failure = toPlatformError(error);
  const send = failure.code === "request.too_large" ? sendAndClose : sendJson;
  send(response, status ?? failure.status, sandboxFailure(failure));
}

/** Sends a failure in the envelope of the control API. */
export function sendControlFailure(response: ServerResponse, error: unknown): void {
  const { status, message, code, retryable } = toPlatformError(error);
  const send = code === "request.too_large" ? sendAndClose : sendJson;
  send(response, status, { success: false, code: status, message, data: null, error: { code, retryable } });
}

export function sendControl(response: ServerResponse, data: unknown): void {
  sendJson(response, 200, { success: true, code: 0, message: "", data });
}

export function toPlatformError(error: unknown): PlatformError {
  return error instanceof PlatformError ? error : new PlatformError("internal", messageOf(error), { cause: error });
}

/** A JSON object from a body; an empty body is an empty object. */
export function parseObject(text: string): Record<string, unknown> {
  if (text.trim() === "") return {};
  let value: unknown;
  try {
    value = parseBoundedJson(text);
  } catch (error) {
    const why = error instanceof ReadLimitExceeded ? "the body is not accepted" : "the body is not valid JSON";
    throw new InvalidBody(`${why}: ${messageOf(error)}`);
  }
  if (!isObject(value)) throw new InvalidBody(`the body must be a JSON object of arguments, not ${nameOf(value)}`);
  return value;
}

/** The body is no JSON object. An object with the wrong fields is another error. */
export class InvalidBody extends PlatformError {
  constructor(message: string) {
    super("request.invalid", message);
  }
}

function nameOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : typeof value;
}
