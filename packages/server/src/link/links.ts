import { request } from "node:http";
import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream, type ServerSessionOptions } from "node:http2";
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { LINK_PROTOCOL, messageOf, PlatformError, runnerRoutes } from "@aenv/contract";
import type { Sandbox } from "@aenv/sandbox";

type Host = Pick<Sandbox, "id" | "address">;

interface Link {
  session: Promise<ServerHttp2Session>;
  readonly end: AbortController;
}

export interface LinksOptions {
  /** Answers a request of the process in this sandbox. Must not throw. */
  readonly answer: (hostId: string, stream: ServerHttp2Stream, headers: Readonly<Record<string, string | string[] | undefined>>) => void;
  readonly onFailure: (error: unknown) => void;
}

const CONNECT_MS = 10_000;
const SILENT_FAILURES = 2;
const RETRY_MS = [50, 200, 1_000, 3_000] as const;
/** A session that lasted for less is no success, so that a process that is cut off for its frames is connected to less and less often. */
const STABLE_MS = 10_000;

/** Requests of one process at a time; its client keeps further ones back. */
const STREAMS = 256;
/** Pings, settings and priorities of one process within the time. Its client sends none. */
const CONTROL_FRAMES = 200;
const CONTROL_FRAMES_MS = 10_000;

/** What a process may send. Its code may speak HTTP/2 itself. */
const SESSION: ServerSessionOptions = {
  settings: {
    maxConcurrentStreams: STREAMS,
    // So much of each request is buffered unread.
    initialWindowSize: 64 * 1_024,
    maxHeaderListSize: 8 * 1_024,
  },
  maxHeaderListPairs: 32,
  maxSettings: 16,
  maxSessionInvalidFrames: 100,
  // The unit is MB. Answers that are not read are limited to less.
  maxSessionMemory: 100,
  // Requests that are cancelled: so many at once, and then so many in a second.
  streamResetBurst: 1_000,
  streamResetRate: 33,
};

/**
 * Connections to the processes of environments, over which those send requests. The server opens them and keeps them open, so that a
 * process needs no network, and the connection itself says whose requests they are.
 */
export class Links {
  readonly #options: LinksOptions;
  readonly #links = new Map<string, Link>();

  constructor(options: LinksOptions) {
    this.#options = options;
  }

  /** Resolves when the process is connected. A connection that fails or is lost is opened again, until `forget`. */
  async open(host: Host): Promise<void> {
    await (this.#links.get(host.id) ?? this.#begin(host)).session;
  }

  /** The same without waiting. */
  keep(host: Host): void {
    if (!this.#links.has(host.id)) this.#begin(host);
  }

  forget(hostId: string): void {
    this.#links.get(hostId)?.end.abort();
    this.#links.delete(hostId);
  }

  close(): void {
    for (const id of [...this.#links.keys()]) this.forget(id);
  }

  #begin(host: Host): Link {
    const end = new AbortController();
    const link: Link = { end, session: this.#connect(host, end.signal) };
    this.#links.set(host.id, link);
    void this.#keep(host, link);
    return link;
  }

  async #keep(host: Host, link: Link): Promise<void> {
    const { signal } = link.end;
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        const session = await link.session;
        const since = performance.now();
        await closed(session);
        if (performance.now() - since >= STABLE_MS) failures = 0;
      } catch (error) {
        // The first failure is thrown by `open`. A process that is being ended loses its connection a moment before `forget`.
        if (failures > SILENT_FAILURES && !signal.aborted) this.#options.onFailure(error);
      }
      if (signal.aborted) return;
      await pause(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)], undefined, { ref: false, signal }).catch(() => {});
      if (signal.aborted) return;
      link.session = this.#connect(host, signal);
      link.session.catch(() => {});
    }
  }

  async #connect(host: Host, signal: AbortSignal): Promise<ServerHttp2Session> {
    const socket = await upgrade(host, signal);
    const session = performServerHandshake(socket, SESSION);
    const end = () => session.destroy();
    signal.addEventListener("abort", end, { once: true });
    session.on("error", () => {});
    session.once("close", () => {
      signal.removeEventListener("abort", end);
      socket.destroy();
    });
    const countControlFrame = controlFrameLimit(() => session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM));
    for (const event of ["ping", "remoteSettings", "priority"]) session.on(event, countControlFrame);
    session.on("stream", (stream, headers) => {
      stream.on("error", () => {}).on("priority", countControlFrame);
      this.#options.answer(host.id, stream, headers);
    });
    return session;
  }
}

/** Counts frames, and calls `exceed` when there are too many within the time. Each of them is answered, or costs as much as a request. */
function controlFrameLimit(exceed: () => void): () => void {
  let since = performance.now();
  let count = 0;
  return () => {
    const now = performance.now();
    if (now - since >= CONTROL_FRAMES_MS) {
      since = now;
      count = 0;
    }
    if (++count > CONTROL_FRAMES) exceed();
  };
}

function closed(session: ServerHttp2Session): Promise<void> {
  return new Promise((resolve) => {
    if (session.destroyed) resolve();
    else session.once("close", () => resolve());
  });
}

function upgrade({ id, address }: Host, signal: AbortSignal): Promise<Socket> {
  const lost = (why: string, cause?: unknown) =>
    new PlatformError("sandbox.lost", `cannot connect to the process of the environment in sandbox '${id}': ${why}`, { cause });
  return new Promise((resolve, reject) => {
    const sent = request({
      ...(address.kind === "unix" ? { socketPath: address.path } : { host: address.host, port: address.port }),
      path: runnerRoutes.link.path,
      headers: { connection: "upgrade", upgrade: LINK_PROTOCOL },
      agent: false,
      signal,
    });
    // Not the timeout of the socket, which each byte of the answer begins again.
    const timer = setTimeout(() => sent.destroy(lost(`it did not answer within ${CONNECT_MS / 1_000} s`)), CONNECT_MS);
    sent.once("close", () => clearTimeout(timer));
    sent.once("upgrade", (_, socket, head) => {
      clearTimeout(timer);
      // Read by the session before what comes next.
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    sent.once("response", (response) => {
      response.destroy();
      reject(
        new PlatformError(
          "environment.invalid",
          "the environment was built with a version of the kit that sends no requests to the platform; build it again and publish a new version",
        ),
      );
    });
    sent.once("error", (error) => reject(error instanceof PlatformError ? error : lost(messageOf(error), error)));
    sent.end();
  });
}
