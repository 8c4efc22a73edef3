import { type ServerResponse, STATUS_CODES } from "node:http";
import { type PlatformError, retryAfterOf, sandboxFailure } from "@aenv/contract";
import { endResponse } from "../http/drain.ts";

// The gateway's own responses, through Node's HTTP server and as bytes for connections on the fast path.

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  endResponse(response, text);
}

export function sendRefusal(response: ServerResponse, failure: PlatformError): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const retryAfter = retryAfterOf(failure);
  if (retryAfter !== null) response.setHeader("retry-after", retryAfter);
  sendJson(response, failure.status, sandboxFailure(failure));
}

export function jsonBytes(status: number, content: unknown, connection: string, retryAfter: string | null = null): Buffer {
  const body = JSON.stringify(content);
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\n`;
  const retry = retryAfter === null ? "" : `retry-after: ${retryAfter}\r\n`;
  return Buffer.from(`${head}${retry}content-length: ${Buffer.byteLength(body)}\r\nconnection: ${connection}\r\n\r\n${body}`);
}

export function refusalBytes(failure: PlatformError, connection: string): Buffer {
  return jsonBytes(failure.status, sandboxFailure(failure), connection, retryAfterOf(failure));
}
