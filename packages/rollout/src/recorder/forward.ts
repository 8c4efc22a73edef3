import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { boundedChunks, PlatformError, ReadLimitExceeded, readBoundedBytes } from "@aenv/contract";
import { type Dispatcher, request as send } from "undici";
import { MAX_ANSWER_BYTES } from "../models/http.ts";

/** Sees a request and its answer as they pass. */
export interface ExchangeRecorder {
  /** Called with the whole body of the request; may throw to refuse it. What it returns is sent on. */
  request(body: Buffer): Buffer | Promise<Buffer>;
  answer(status: number, headers: AnswerHeaders): void;
  /** Called with each piece of the answer's body. */
  piece(bytes: Buffer): void;
  /** Called once for each request that was not refused, also if its answer broke off or never came. Never throws. */
  end(ending: ExchangeEnding): void;
}

export interface AnswerHeaders {
  readonly "content-type"?: string | undefined;
  readonly "retry-after"?: string | undefined;
}

/** How an exchange ended: whole, because the client left, or because the endpoint could not be reached or broke off. */
export type ExchangeEnding = { readonly kind: "whole" | "left" } | { readonly kind: "broken"; readonly error: unknown };

export interface Forwarding {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: string;
  /** Laid over the client's own headers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly dispatcher: Dispatcher;
  readonly recorder: ExchangeRecorder;
}

/** The largest request that is passed on: the recorder holds it whole. */
const MAX_REQUEST_BYTES = 64 * 1_024 ** 2;

/** Headers of one connection, and those that would make the answer unreadable for the recorder. */
const DROPPED = new Set([
  "host",
  "connection",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
  "content-length",
  "accept-encoding",
  "authorization",
  "x-api-key",
]);

/** Passes a request on and its answer back, piece by piece, and shows both to the recorder. */
export async function forward({ request, response, url, headers, dispatcher, recorder }: Forwarding): Promise<void> {
  const body = await recorder.request(await readAll(request));
  const left = new AbortController();
  if (response.destroyed) left.abort();
  else response.once("close", () => left.abort());
  let ending: ExchangeEnding = { kind: "whole" };
  try {
    const answer = await send(url, {
      method: request.method as Dispatcher.HttpMethod,
      headers: { ...kept(request.headers), ...headers },
      ...(body.length > 0 && { body }),
      signal: left.signal,
      dispatcher,
    });
    recorder.answer(answer.statusCode, {
      "content-type": headerOf(answer.headers, "content-type"),
      "retry-after": headerOf(answer.headers, "retry-after"),
    });
    response.writeHead(answer.statusCode, kept(answer.headers));
    for await (const piece of boundedChunks(answer.body, { maxBytes: MAX_ANSWER_BYTES })) {
      recorder.piece(piece as Buffer);
      if (!response.write(piece)) await once(response, "drain", { signal: left.signal });
    }
    response.end();
  } catch (error) {
    ending = left.signal.aborted ? { kind: "left" } : { kind: "broken", error };
    throw error;
  } finally {
    recorder.end(ending);
    if (ending.kind !== "whole" && response.headersSent) response.destroy();
  }
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  try {
    return Buffer.from(await readBoundedBytes(request, { maxBytes: MAX_REQUEST_BYTES }));
  } catch (error) {
    if (error instanceof ReadLimitExceeded)
      throw new PlatformError("request.too_large", `the program's request is not passed on: ${error.message}`);
    throw error;
  }
}

function headerOf(headers: Readonly<Record<string, string | string[] | undefined>>, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function kept(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string | string[]> {
  const result: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) if (value !== undefined && !DROPPED.has(name)) result[name] = value;
  return result;
}
