import { setTimeout } from "node:timers/promises";
import { controlEnvelope, type ErrorCode, isErrorCode, isPlatformError, messageOf, PlatformError, sandboxEnvelope } from "@aenv/contract";
import type { Sandbox, SandboxAddress } from "@aenv/sandbox";
import { type Dispatcher, Pool } from "undici";
import { SandboxLines } from "./connections.ts";

interface Ways {
  readonly pool: Pool;
  /** For the many short calls, which a full client would make dear. */
  readonly lines: SandboxLines;
  usedAt: number;
}

/** Keep-alive connections to sandboxes, one pool a sandbox; the gateway's calls go through the same. */
export class SandboxClients {
  readonly #ways = new Map<string, Ways>();

  pool(sandboxId: string, address: SandboxAddress): Pool {
    return this.#to(sandboxId, address).pool;
  }

  lines(sandboxId: string, address: SandboxAddress): SandboxLines {
    return this.#to(sandboxId, address).lines;
  }

  #to(sandboxId: string, address: SandboxAddress): Ways {
    let ways = this.#ways.get(sandboxId);
    if (ways === undefined) {
      const pool = new Pool(originOf(address), {
        ...(address.kind === "unix" && { connect: { socketPath: address.path } }),
        keepAliveTimeout: 30_000,
        // A tool may take as long as it likes; whoever waits for it decides how long.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      ways = { pool, lines: new SandboxLines(address), usedAt: 0 };
      this.#ways.set(sandboxId, ways);
    }
    ways.usedAt = performance.now();
    return ways;
  }

  /** Breaks what is in flight to a sandbox that is gone. */
  async forget(sandboxId: string): Promise<void> {
    const ways = this.#ways.get(sandboxId);
    this.#ways.delete(sandboxId);
    ways?.lines.destroy();
    await ways?.pool.destroy();
  }

  /** Lets go of connections that nobody has used for so long: of the end of another replica's sandbox nobody tells us. */
  trim(idleMs: number): void {
    for (const [sandboxId, { pool, lines, usedAt }] of this.#ways) {
      if (performance.now() - usedAt < idleMs) continue;
      this.#ways.delete(sandboxId);
      // What is still in flight finishes.
      lines.close();
      void pool.close().catch(() => {});
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#ways.keys()].map((sandboxId) => this.forget(sandboxId)));
  }
}

function originOf(address: SandboxAddress): string {
  return address.kind === "unix" ? "http://localhost" : `http://${address.host}:${address.port}`;
}

export interface SandboxRequest {
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
export async function askSandbox(
  clients: SandboxClients,
  sandboxId: string,
  address: SandboxAddress,
  request: SandboxRequest,
): Promise<unknown> {
  const deadline = AbortSignal.timeout(request.timeoutMs);
  const signal = request.signal === undefined ? deadline : AbortSignal.any([request.signal, deadline]);
  let status: number;
  let text: string;
  try {
    const answer = await clients.pool(sandboxId, address).request({
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
    throw new PlatformError("sandbox.lost", `the sandbox cannot be reached: ${messageOf(error)}`, { cause: error });
  }
  return readAnswer(status, text, request.path);
}

/** Leaving the loop early destroys the stream, and with it the connection. */
async function readText({ headers, body }: Dispatcher.ResponseData, { path, maxBytes }: SandboxRequest): Promise<string> {
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

/** How long the system may take to tell that a sandbox is gone. */
const EXIT_MS = 1_000;

/** Why a sandbox was lost, if it has ended: that says more than that the connection broke. */
export async function causeOf(sandbox: Sandbox, error: unknown): Promise<unknown> {
  if (!isPlatformError(error, "sandbox.lost")) return error;
  const exit = await Promise.race([sandbox.exited, setTimeout(EXIT_MS, null, { ref: false })]);
  return exit === null ? error : new PlatformError("sandbox.lost", `the sandbox ended: ${exit.reason}`, { cause: error });
}

function readAnswer(status: number, text: string, path: string): unknown {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new PlatformError("sandbox.lost", `the sandbox answered ${path} with ${status} and no JSON`);
  }
  const sandbox = sandboxEnvelope.safeParse(body);
  if (sandbox.success && sandbox.data.success) return sandbox.data.data;
  const control = controlEnvelope.safeParse(body);
  const code = (sandbox.data?.errorInfo ?? (control.success ? control.data.error : null))?.code;
  const message = sandbox.data?.error ?? (control.success ? control.data.message : null) ?? `the sandbox answered ${path} with ${status}`;
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
