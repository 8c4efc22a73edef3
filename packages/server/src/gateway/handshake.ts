import type { IncomingMessage } from "node:http";
import { PlatformError } from "@aenv/contract";
import { type ResponseHead, readResponseHead } from "./fast-path/head.ts";
import { isEndToEnd } from "./headers.ts";

type Headers = Readonly<Record<string, string | string[]>>;

/** Throws unless the request can begin a WebSocket: GET without a body. */
export function checkHandshake({ method, headers }: IncomingMessage): void {
  if (method === "GET" && headers["content-length"] === undefined && headers["transfer-encoding"] === undefined) return;
  throw new PlatformError("request.invalid", `a WebSocket begins with GET and without a body; this was ${method} or had one`);
}

/** The handshake for the program. */
export function handshakeHead(path: string, headers: Headers): string {
  return headText(`GET ${path} HTTP/1.1`, headers, SWITCH);
}

/** The response to the client when the program has accepted. */
export function acceptedHead(
  { statusLine, headers }: ResponseHead,
  rewrite: (headers: Record<string, string | string[]>) => Headers,
): string {
  return headText(statusLine, rewrite(grouped(headers.filter(([name]) => isEndToEnd(name)))), SWITCH);
}

/** The head of a response that does not accept, with all that says where its body ends. */
export function refusedHead(
  { statusLine, headers }: ResponseHead,
  rewrite: (headers: Record<string, string | string[]>) => Headers,
): string {
  return headText(statusLine, rewrite(grouped(headers)), "");
}

function grouped(headers: ResponseHead["headers"]): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of headers) {
    const before = kept[name];
    kept[name] = before === undefined ? value : [...[before].flat(), value];
  }
  return kept;
}

const SWITCH = "connection: Upgrade\r\nupgrade: websocket\r\n";

function headText(first: string, headers: Headers, last: string): string {
  let text = `${first}\r\n`;
  for (const name in headers) for (const value of [headers[name] ?? []].flat()) text += `${name}: ${value}\r\n`;
  return `${text}${last}\r\n`;
}

/** A program's response to a handshake so far. */
export type HandshakeAnswer =
  | { readonly kind: "unfinished" }
  | { readonly kind: "accepted"; readonly head: ResponseHead; readonly rest: Buffer }
  | { readonly kind: "refused"; readonly head: ResponseHead; readonly rest: Buffer };

/** Reads a program's response, after informational ones such as 103. Throws when it is not HTTP, or switches to another protocol. */
export function readHandshake(bytes: Buffer): HandshakeAnswer {
  const head = readResponseHead(bytes);
  if (head === null) return { kind: "unfinished" };
  const rest = bytes.subarray(head.bodyAt);
  if (head.status >= 200) return { kind: "refused", head, rest };
  if (head.status !== 101) return rest.length === 0 ? { kind: "unfinished" } : readHandshake(rest);
  if (head.headers.some(([name, value]) => name === "upgrade" && value.toLowerCase() === "websocket"))
    return { kind: "accepted", head, rest };
  throw new Error("the program switched to a protocol that was not requested");
}
