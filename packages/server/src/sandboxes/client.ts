import { setTimeout } from "node:timers/promises";
import {
  controlEnvelope,
  type ErrorCode,
  isErrorCode,
  isPlatformError,
  messageOf,
  PlatformError,
  parseBoundedJson,
  ReadLimitExceeded,
  readBoundedText,
  sandboxEnvelope,
  TimedSignal,
} from "@aenv/contract";
import type { Sandbox, SandboxAddress } from "@aenv/sandbox";
import { type Dispatcher, Pool } from "undici";
import { SandboxConnections } from "./connections.ts";

interface Endpoint {
  readonly pool: Pool;
  /** Connections for the gateway's fast path: a call costs much less than with the full client. */
  readonly connections: SandboxConnections;
  usedAt: number;
}

/** Keep-alive connections to sandboxes, one pool per sandbox; the gateway uses the same ones. */
export class SandboxClients {
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #onForget: (sandboxId: string) => void;

  /** `onForget` is told every sandbox that has ended. */
  constructor(onForget: (sandboxId: string) => void = () => {}) {
    this.#onForget = onForget;
  }

  pool(sandboxId: string, address: SandboxAddress): Pool {
    return this.#endpoint(sandboxId, address).pool;
  }

  connections(sandboxId: string, address: SandboxAddress): SandboxConnections {
    return this.#endpoint(sandboxId, address).connections;
  }

  #endpoint(sandboxId: string, address: SandboxAddress): Endpoint {
    let endpoint = this.#endpoints.get(sandboxId);
    if (endpoint === undefined) {
      const pool = new Pool(originOf(address), {
        ...(address.kind === "unix" && { connect: { socketPath: address.path } }),
        keepAliveTimeout: 30_000,
        // A tool may run for any time; the caller sets the timeout.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      endpoint = { pool, connections: new SandboxConnections(address), usedAt: 0 };
      this.#endpoints.set(sandboxId, endpoint);
    }
    endpoint.usedAt = performance.now();
    return endpoint;
  }

  /** Aborts the calls in flight to a sandbox that has ended. */
  async forget(sandboxId: string): Promise<void> {
    this.#onForget(sandboxId);
    const endpoint = this.#endpoints.get(sandboxId);
    this.#endpoints.delete(sandboxId);
    endpoint?.connections.destroy();
    await endpoint?.pool.destroy();
  }

  /** Closes connections that have been idle for so long. The end of another server's sandbox is not reported to this one. */
  trim(idleMs: number): void {
    for (const [sandboxId, { pool, connections, usedAt }] of this.#endpoints) {
      if (performance.now() - usedAt < idleMs) continue;
      this.#endpoints.delete(sandboxId);
      // Calls in flight finish.
      connections.close();
      void pool.close().catch(() => {});
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#endpoints.keys()].map((sandboxId) => this.forget(sandboxId)));
  }
}

function originOf(address: SandboxAddress): string {
  if (address.kind === "unix") return "http://localhost";
  const { host, port } = address;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

export interface SandboxRequest {
  readonly method: Dispatcher.HttpMethod;
  readonly path: string;
  readonly body?: unknown;
  readonly timeoutMs: number;
  /** A larger response is not read; the connection is closed. */
  readonly maxBytes: number;
  /** Aborted when the caller no longer waits; the sandbox then sees its request aborted. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends a request of the platform to a sandbox. An error response becomes a `PlatformError` with the same code; a sandbox that cannot
 * be reached gives `sandbox.lost`.
 */
export async function requestSandbox(
  clients: SandboxClients,
  sandboxId: string,
  address: SandboxAddress,
  request: SandboxRequest,
): Promise<unknown> {
  const { status, text } = await askSandbox(clients, sandboxId, address, request);
  return parseResponse(status, text, request.path);
}

/** The same for any response, whatever its status and its form. */
export async function askSandbox(
  clients: SandboxClients,
  sandboxId: string,
  address: SandboxAddress,
  request: SandboxRequest,
): Promise<{ readonly status: number; readonly text: string }> {
  using deadline = new TimedSignal(request.timeoutMs, request.signal);
  try {
    const response = await clients.pool(sandboxId, address).request({
      method: request.method,
      path: request.path,
      signal: deadline.signal,
      ...(request.body !== undefined && { body: JSON.stringify(request.body), headers: { "content-type": "application/json" } }),
    });
    return { status: response.statusCode, text: await readText(response, request) };
  } catch (error) {
    if (request.signal?.aborted) throw request.signal.reason;
    if (isPlatformError(error)) throw error;
    if (deadline.isOver)
      throw new PlatformError("request.timeout", `the sandbox did not answer ${request.path} within ${request.timeoutMs} ms`);
    throw new PlatformError("sandbox.lost", `the sandbox cannot be reached: ${messageOf(error)}`, { cause: error });
  }
}

async function readText({ headers, body }: Dispatcher.ResponseData, { path, maxBytes }: SandboxRequest): Promise<string> {
  if (Number(headers["content-length"] ?? 0) > maxBytes) {
    body.on("error", () => {}).destroy();
    throw tooLarge(path, maxBytes);
  }
  try {
    return await readBoundedText(body, { maxBytes });
  } catch (error) {
    throw error instanceof ReadLimitExceeded ? tooLarge(path, maxBytes) : error;
  }
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

/** How long the operating system may take to report the exit of a sandbox. */
const EXIT_MS = 1_000;

/** The exit reason of a sandbox that was lost, if it has ended: it explains more than a broken connection does. */
export async function exitCauseOf(sandbox: Sandbox, error: unknown): Promise<unknown> {
  if (!isPlatformError(error, "sandbox.lost")) return error;
  const exit = await Promise.race([sandbox.exited, setTimeout(EXIT_MS, null, { ref: false })]);
  return exit === null ? error : new PlatformError("sandbox.lost", `the sandbox ended: ${exit.reason}`, { cause: error });
}

function parseResponse(status: number, text: string, path: string): unknown {
  let body: unknown;
  try {
    body = parseBoundedJson(text);
  } catch (error) {
    if (error instanceof ReadLimitExceeded)
      throw new PlatformError("sandbox.answer_too_large", `the answer of the sandbox to ${path} is not read: ${error.message}`);
    if (isMissing(status)) throw noRoute(path);
    throw new PlatformError("sandbox.lost", `the sandbox answered ${path} with ${status} and no JSON`);
  }
  const sandbox = sandboxEnvelope.safeParse(body);
  if (sandbox.success && sandbox.data.success) return sandbox.data.data;
  const control = controlEnvelope.safeParse(body);
  const code = (sandbox.data?.errorInfo ?? (control.success ? control.data.error : null))?.code;
  if (code === undefined && !sandbox.success && isMissing(status)) throw noRoute(path);
  const message = sandbox.data?.error ?? (control.success ? control.data.message : null) ?? `the sandbox answered ${path} with ${status}`;
  throw new PlatformError(allowedCode(code), message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}...` : message);
}

/** A program has only some of the routes of an environment; web frameworks answer the others with JSON of their own, or with a text. */
function isMissing(status: number): boolean {
  return status === 404 || status === 405;
}

function noRoute(path: string): PlatformError {
  return new PlatformError("instance.unsupported", `the program of the instance has no route ${path}`);
}

/** Messages of sandboxes are stored in rows. */
const MAX_MESSAGE = 4_000;

/** Error codes that a sandbox may return. Codes about tokens, quotas or the store come from the platform only. */
const SANDBOX_CODES = /^(?:environment|instance|task|tool|function|reward|health|role|snapshot|sandbox|request|route)\./;

function allowedCode(code: unknown): ErrorCode {
  if (!isErrorCode(code)) return "sandbox.lost";
  return SANDBOX_CODES.test(code) || code === "server.draining" ? code : "instance.failed";
}
