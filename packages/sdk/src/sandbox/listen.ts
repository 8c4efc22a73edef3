import type { IncomingMessage } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import type { Duplex } from "node:stream";
import { commandRoutes, fillPath, LISTEN_PORT, LISTEN_PROTOCOL, ReadLimitExceeded, readBoundedText } from "@aenv/contract";
import { EnvironmentError, NetworkError } from "../errors/errors.ts";
import { readFailure } from "../errors/failure.ts";
import { StatusError } from "../errors/http-errors.ts";
import type { SandboxTarget } from "./target.ts";

/** A port inside a sandbox on which this process listens. */
export interface SandboxListener extends AsyncDisposable {
  /** Programs of the sandbox connect to `127.0.0.1` and this port. */
  readonly port: number;
  /** Resolves when the port is closed: by `close`, with the sandbox, or because the server is gone. */
  readonly closed: Promise<void>;
  /** Closes the port and its connections. */
  close(): Promise<void>;
}

export type OnConnection = (connection: Duplex) => void;

const OPEN_MS = 60_000;
const WINDOW_BYTES = 256 * 1_024;
const MAX_REFUSAL_BYTES = 64 * 1_024;

/** Opens a connection to the server that carries the connections of the port as streams of HTTP/2, in which the server is the client. */
export async function openListener(
  target: SandboxTarget,
  port: number,
  onConnection: OnConnection,
  signal?: AbortSignal,
): Promise<SandboxListener> {
  signal?.throwIfAborted();
  const { id } = target;
  const { socket, listening } = await upgrade(target, port, signal);
  const { performServerHandshake } = nodeModule("http2");
  const session: ServerHttp2Session = performServerHandshake(socket, {
    settings: { initialWindowSize: WINDOW_BYTES },
    maxSessionMemory: 100,
  });
  session.on("error", () => {});
  session.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    if (headers[":method"] !== "CONNECT") return stream.close();
    stream.respond({ ":status": 200 });
    onConnection(stream);
  });
  const closed = new Promise<void>((resolve) => {
    session.once("close", () => {
      signal?.removeEventListener("abort", end);
      socket.destroy();
      resolve();
    });
  });
  const end = () => session.destroy();
  signal?.addEventListener("abort", end, { once: true });
  if (signal?.aborted) end();
  const close = () => {
    end();
    return closed;
  };
  if (!Number.isInteger(listening)) {
    await close();
    throw new NetworkError(`the server did not name the port on which it listens in instance '${id}'`);
  }
  return { port: listening, closed, close, [Symbol.asyncDispose]: close };
}

function upgrade({ id, control }: SandboxTarget, port: number, signal?: AbortSignal): Promise<{ socket: Duplex; listening: number }> {
  const url = new URL(control.urlOf(`${fillPath(commandRoutes.listen, { id })}?port=${port}`));
  const { request } = nodeModule(url.protocol === "https:" ? "https" : "http");
  return new Promise((resolve, reject) => {
    const lost = (cause?: unknown) => new NetworkError(`could not listen on port ${port} inside instance '${id}'`, { cause });
    const sent = request(url, {
      headers: { ...control.headers, connection: "upgrade", upgrade: LISTEN_PROTOCOL },
      agent: false,
      timeout: OPEN_MS,
      ...(signal && { signal }),
    });
    sent.once("upgrade", (answer, socket, head) => {
      socket.setTimeout(0);
      // Read by the session before what comes next.
      if (head.length > 0) socket.unshift(head);
      resolve({ socket, listening: Number(answer.headers[LISTEN_PORT]) });
    });
    sent.once("response", (answer) => {
      refusalOf(answer, id, port).then(reject, (cause) => reject(lost(cause)));
    });
    sent.once("timeout", () => sent.destroy(new Error(`no answer within ${OPEN_MS / 1_000} s`)));
    sent.once("error", (error) => reject(signal?.aborted ? signal.reason : lost(error)));
    sent.end();
  });
}

async function refusalOf(answer: IncomingMessage, id: string, port: number): Promise<Error> {
  const text = await readBoundedText(answer, { maxBytes: MAX_REFUSAL_BYTES }).catch((error: unknown) => {
    if (error instanceof ReadLimitExceeded) return "";
    throw error;
  });
  const { message, code } = readFailure(new StatusError(answer.statusCode ?? 0, text, null), "instance.not_found");
  return new EnvironmentError(`could not listen on port ${port} inside instance '${id}': ${message}`, { code });
}

/** Modules of Node, which a browser does not have: a bundle for browsers must not import them. */
function nodeModule<Name extends "http" | "https" | "http2">(name: Name) {
  const load = globalThis.process?.getBuiltinModule;
  if (load === undefined) throw new EnvironmentError("sandbox.listen needs Node", { code: "sandbox.unsupported" });
  return load(name) as ReturnType<typeof process.getBuiltinModule<Name>>;
}
