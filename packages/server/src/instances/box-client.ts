import { setTimeout } from "node:timers/promises";
import { boxEnvelope, controlEnvelope, type ErrorCode, isErrorCode, isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { Box, BoxAddress } from "@aenv/sandbox";
import { type Dispatcher, Pool } from "undici";
import { BoxLines } from "./box-lines.ts";

interface Ways {
  readonly pool: Pool;
  /** For the many short calls, which a full client would make dear. */
  readonly lines: BoxLines;
  usedAt: number;
}

/** Keep-alive connections to boxes, one pool a box; the gateway's calls go through the same. */
export class BoxClients {
  readonly #ways = new Map<string, Ways>();

  pool(boxId: string, address: BoxAddress): Pool {
    return this.#to(boxId, address).pool;
  }

  lines(boxId: string, address: BoxAddress): BoxLines {
    return this.#to(boxId, address).lines;
  }

  #to(boxId: string, address: BoxAddress): Ways {
    let ways = this.#ways.get(boxId);
    if (ways === undefined) {
      const pool = new Pool(originOf(address), {
        ...(address.kind === "unix" && { connect: { socketPath: address.path } }),
        keepAliveTimeout: 30_000,
        // A tool may take as long as it likes; whoever waits for it decides how long.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      ways = { pool, lines: new BoxLines(address), usedAt: 0 };
      this.#ways.set(boxId, ways);
    }
    ways.usedAt = performance.now();
    return ways;
  }

  /** Breaks what is in flight to a box that is gone. */
  async forget(boxId: string): Promise<void> {
    const ways = this.#ways.get(boxId);
    this.#ways.delete(boxId);
    ways?.lines.destroy();
    await ways?.pool.destroy();
  }

  /** Lets go of connections that nobody has used for so long: of the end of another replica's box nobody tells us. */
  trim(idleMs: number): void {
    for (const [boxId, { pool, lines, usedAt }] of this.#ways) {
      if (performance.now() - usedAt < idleMs) continue;
      this.#ways.delete(boxId);
      // What is still in flight finishes.
      lines.close();
      void pool.close().catch(() => {});
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#ways.keys()].map((boxId) => this.forget(boxId)));
  }
}

function originOf(address: BoxAddress): string {
  return address.kind === "unix" ? "http://localhost" : `http://${address.host}:${address.port}`;
}

export interface BoxRequest {
  readonly method: Dispatcher.HttpMethod;
  readonly path: string;
  readonly body?: unknown;
  readonly timeoutMs: number;
  /** More than this is not read; the connection is closed. */
  readonly maxBytes: number;
  /** Fires when nobody waits for the answer any more; the sandbox then sees its request aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** Asks a sandbox something of the platform's own; its refusals come back as the same errors, its absence as `sandbox.lost`. */
export async function askBox(clients: BoxClients, boxId: string, address: BoxAddress, request: BoxRequest): Promise<unknown> {
  const deadline = AbortSignal.timeout(request.timeoutMs);
  const signal = request.signal === undefined ? deadline : AbortSignal.any([request.signal, deadline]);
  let status: number;
  let text: string;
  try {
    const answer = await clients.pool(boxId, address).request({
      method: request.method,
      path: request.path,
      signal,
      ...(request.body !== undefined && { body: JSON.stringify(request.body), headers: { "content-type": "application/json" } }),
    });
    status = answer.statusCode;
    text = await readText(answer, request);
  } catch (error) {
    if (request.signal?.aborted) throw request.signal.reason;
    if (isPlatformError(error)) throw error;
    if (deadline.aborted)
      throw new PlatformError("request.timeout", `the sandbox did not answer ${request.path} within ${request.timeoutMs} ms`);
    throw new PlatformError("sandbox.lost", `the box cannot be reached: ${messageOf(error)}`, { cause: error });
  }
  return readAnswer(status, text, request.path);
}

/** Leaving the loop early destroys the stream, and with it the connection. */
async function readText({ headers, body }: Dispatcher.ResponseData, { path, maxBytes }: BoxRequest): Promise<string> {
  if (Number(headers["content-length"] ?? 0) > maxBytes) {
    body.on("error", () => {}).destroy();
    throw tooLarge(path, maxBytes);
  }
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > maxBytes) throw tooLarge(path, maxBytes);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function tooLarge(path: string, maxBytes: number): PlatformError {
  return new PlatformError(
    "sandbox.answer_too_large",
    `the sandbox answered ${path} with more than ${maxBytes} bytes, the limit for this`,
    {
      details: { path, limit: maxBytes },
    },
  );
}

/** How long the system may take to tell that a box is gone. */
const EXIT_MS = 1_000;

/** Why a box was lost, if it has ended: that says more than that the connection broke. */
export async function causeOf(box: Box, error: unknown): Promise<unknown> {
  if (!isPlatformError(error, "sandbox.lost")) return error;
  const exit = await Promise.race([box.exited, setTimeout(EXIT_MS, null, { ref: false })]);
  return exit === null ? error : new PlatformError("sandbox.lost", `the box ended: ${exit.reason}`, { cause: error });
}

function readAnswer(status: number, text: string, path: string): unknown {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new PlatformError("sandbox.lost", `the box answered ${path} with ${status} and no JSON`);
  }
  const box = boxEnvelope.safeParse(body);
  if (box.success && box.data.success) return box.data.data;
  const control = controlEnvelope.safeParse(body);
  const code = (box.data?.errorInfo ?? (control.success ? control.data.error : null))?.code;
  const message = box.data?.error ?? (control.success ? control.data.message : null) ?? `the box answered ${path} with ${status}`;
  throw new PlatformError(codeOf(code), message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}...` : message);
}

/** Messages of sandboxes are kept in rows. */
const MAX_MESSAGE = 4_000;

/** What a sandbox can know of. That a token is wrong, a quota reached or the store away is not for it to say. */
const SANDBOX_CODES = /^(?:environment|instance|task|tool|function|reward|health|snapshot|sandbox|request|route)\./;

function codeOf(code: unknown): ErrorCode {
  if (!isErrorCode(code)) return "sandbox.lost";
  return SANDBOX_CODES.test(code) || code === "server.draining" ? code : "instance.failed";
}
