import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import type { Socket } from "node:net";
import {
  isErrorCode,
  LINK_INSTANCE,
  LINK_PROTOCOL,
  type LinkFailure,
  type LinkParameters,
  type LinkPath,
  PlatformError,
  parseBoundedJson,
  readBoundedText,
} from "@aenv/contract";

export type LinkContent = Uint8Array | AsyncIterable<Uint8Array>;

export interface LinkRequest<P extends LinkPath> {
  readonly path: P;
  readonly instanceId: string;
  readonly parameters: LinkParameters<P>;
  /** What follows the parameters; null leaves the request open for more. */
  readonly content?: LinkContent | null;
  readonly signal?: AbortSignal | undefined;
}

export interface LinkOptions {
  /** How long a request waits for a connection of the platform. */
  readonly waitMs?: number;
}

/** A server that died is replaced within seconds. */
const WAIT_MS = 60_000;
/** The longest answers are lists of files. */
const MAX_ANSWER_BYTES = 64 * 1_024 ** 2;
const WINDOW_BYTES = 256 * 1_024;

/**
 * The connection over which environment code asks the platform for sandboxes. The platform opens it, so a process without a network
 * has it too, and nothing in the process names the platform's address or a token.
 */
export class PlatformLink {
  readonly #waitMs: number;
  /** The newest last: a server that took over from another one connects while the old connection may still be there. */
  #sessions: ClientHttp2Session[] = [];
  readonly #waiting = new Set<() => void>();

  constructor({ waitMs = WAIT_MS }: LinkOptions = {}) {
    this.#waitMs = waitMs;
  }

  /** Takes a connection that the platform has upgraded. */
  accept(socket: Socket): void {
    // Loaded when it is needed: most environments have no sandboxes.
    const { connect } = process.getBuiltinModule("node:http2");
    // Sockets of an HTTP server stay half open, and the session would not notice that the server is gone.
    socket.allowHalfOpen = false;
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${LINK_PROTOCOL}\r\n\r\n`);
    const session = connect("http://platform", {
      createConnection: () => socket,
      settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
      maxSessionMemory: 1_000,
    });
    session.on("error", () => {});
    session.once("close", () => {
      this.#sessions = this.#sessions.filter((one) => one !== session);
    });
    session.once("connect", () => {
      this.#sessions.push(session);
      for (const wake of this.#waiting) wake();
    });
  }

  /** Sends a request and waits for the head of its answer. An error of the platform is thrown with the platform's code. */
  async request<P extends LinkPath>({ path, instanceId, parameters, content, signal }: LinkRequest<P>): Promise<ClientHttp2Stream> {
    const session = await this.#session(signal);
    const stream = session.request(
      { ":method": "POST", ":path": path, [LINK_INSTANCE]: instanceId },
      signal === undefined ? {} : { signal },
    );
    const answered = headOf(stream, path, signal);
    stream.write(`${JSON.stringify(parameters)}\n`);
    if (content !== null) void send(stream, content);
    const head = await answered;
    if (head[":status"] === 200) return stream;
    throw failureFrom(await textOf(stream));
  }

  /** Sends a request whose answer is JSON. */
  async call<P extends LinkPath>(request: LinkRequest<P>): Promise<unknown> {
    return parseBoundedJson(await textOf(await this.request(request)));
  }

  close(): void {
    for (const session of this.#sessions) session.destroy();
  }

  async #session(signal: AbortSignal | undefined): Promise<ClientHttp2Session> {
    signal?.throwIfAborted();
    const session = this.#newest();
    if (session !== null) return session;
    const opened = Promise.withResolvers<void>();
    const stop = () => opened.reject(signal?.reason);
    const late = () => opened.reject(lost(`no server of the platform has connected within ${this.#waitMs / 1_000} s`));
    const timer = setTimeout(late, this.#waitMs);
    this.#waiting.add(opened.resolve);
    signal?.addEventListener("abort", stop);
    try {
      await opened.promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(opened.resolve);
      signal?.removeEventListener("abort", stop);
    }
    return this.#session(signal);
  }

  #newest(): ClientHttp2Session | null {
    return this.#sessions.findLast((session) => !session.closed && !session.destroyed) ?? null;
  }
}

function headOf(
  stream: ClientHttp2Stream,
  path: string,
  signal: AbortSignal | undefined,
): Promise<IncomingHttpHeaders & { ":status"?: number }> {
  return new Promise((resolve, reject) => {
    const fail = (cause?: unknown) =>
      reject(signal?.aborted ? signal.reason : lost(`the connection to the platform was lost during ${path}`, cause));
    // Stays for later errors, which the reader of the stream gets too.
    stream.on("error", fail);
    stream.once("close", () => fail());
    stream.once("response", resolve);
  });
}

/** Never rejects: the answer says why the platform did not take all of it. */
async function send(stream: ClientHttp2Stream, content: LinkContent = new Uint8Array(0)): Promise<void> {
  try {
    for await (const part of content instanceof Uint8Array ? [content] : content) {
      if (stream.closed || stream.destroyed) return;
      if (part.length > 0) await new Promise<void>((resolve) => stream.write(part, () => resolve()));
    }
    stream.end();
  } catch (error) {
    // The source of the content failed: the platform must not take a part for the whole.
    stream.destroy(error instanceof Error ? error : new Error(String(error)));
  }
}

/** The bytes of an answer. They end early only with an error. */
export async function* bytesOf(stream: ClientHttp2Stream, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for await (const part of stream) yield part as Uint8Array;
  } catch (error) {
    throw signal?.aborted ? signal.reason : lost("the connection to the platform was lost", error);
  }
  if (stream.rstCode !== 0) throw lost("the platform broke off its answer");
}

async function textOf(stream: ClientHttp2Stream): Promise<string> {
  return readBoundedText(bytesOf(stream), { maxBytes: MAX_ANSWER_BYTES });
}

export function failureFrom(text: string | LinkFailure): PlatformError {
  const { code, message, retryable } = typeof text === "string" ? (parseBoundedJson(text) as LinkFailure) : text;
  return new PlatformError(isErrorCode(code) ? code : "internal", message, { retryable });
}

export function lost(message: string, cause?: unknown): PlatformError {
  return new PlatformError("sandbox.lost", message, { cause });
}
