import type { Readable } from "node:stream";
import { messageOf, PlatformError, parseBoundedJson, readBoundedText } from "@aenv/contract";
import { Agent, type Dispatcher } from "undici";
import { once } from "../host/once.ts";

/** An error that the daemon answered. */
export class DockerError extends Error {
  override readonly name = "DockerError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export function isDockerError(error: unknown, ...statuses: readonly number[]): error is DockerError {
  return error instanceof DockerError && (statuses.length === 0 || statuses.includes(error.status));
}

export interface RequestOptions {
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body?: object;
  /** A tar archive, instead of a body. */
  readonly archive?: Readable;
  readonly signal?: AbortSignal;
  /** Timeout of the answer's headers, for requests whose answer begins late. */
  readonly headersTimeoutMs?: number;
}

export type Json = Readonly<Record<string, unknown>>;

/** The newest version that this client was written for. A daemon that has only newer ones gets its oldest. */
const NEWEST = "1.47";
/** Docker 19.03. Podman answers 1.40 or newer. */
const OLDEST = "1.40";
const HEADERS_TIMEOUT_MS = 120_000;
/** The list of some ten thousand containers. */
const MAX_ANSWER_BYTES = 64 * 1_024 ** 2;
/** Some answers begin before their work is done: a container's stats, for instance. */
const ANSWER_MS = 120_000;

/** The Engine API of Docker, which Podman has too, over its unix socket. */
export class DockerApi {
  readonly socket: string;
  readonly #agent: Agent;
  readonly #version = once(() => this.#negotiate());

  constructor(socket: string) {
    this.socket = socket;
    this.#agent = new Agent({ connect: { socketPath: socket } });
  }

  /** The JSON of the answer; empty if it has none. */
  async call(method: Dispatcher.HttpMethod, path: string, options: RequestOptions = {}): Promise<Json> {
    return (await this.#answer(method, path, options)) as Json;
  }

  /** A request whose answer does not matter: Podman answers some with text. */
  async tell(method: Dispatcher.HttpMethod, path: string, options: RequestOptions = {}): Promise<void> {
    await (await this.stream(method, path, options)).dump();
  }

  async list(path: string, query: Readonly<Record<string, string>> = {}): Promise<readonly Json[]> {
    return (await this.#answer("GET", path, { query })) as readonly Json[];
  }

  /** The body of the answer as it arrives. */
  async stream(method: Dispatcher.HttpMethod, path: string, options: RequestOptions = {}): Promise<Dispatcher.ResponseData["body"]> {
    return this.#send(method, `/v${await this.#version()}${path}`, options);
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #answer(method: Dispatcher.HttpMethod, path: string, options: RequestOptions): Promise<unknown> {
    const text = await this.#read(await this.stream(method, path, options), path);
    return text === "" ? {} : this.#parse(text, path);
  }

  async #negotiate(): Promise<string> {
    const body = await this.#send("GET", "/version", {});
    const { ApiVersion: newest, MinAPIVersion: oldest = OLDEST } = this.#parse(await this.#read(body, "/version"), "/version") as {
      ApiVersion: string;
      MinAPIVersion?: string;
    };
    const version = chooseVersion(newest, oldest);
    if (version === null)
      throw new PlatformError(
        "sandbox.unsupported",
        `the Docker daemon at ${this.socket} has version ${newest} of the API; ${OLDEST} is needed, which Docker 19.03 and Podman 3 have`,
      );
    return version;
  }

  async #send(method: Dispatcher.HttpMethod, path: string, options: RequestOptions): Promise<Dispatcher.ResponseData["body"]> {
    const query = new URLSearchParams(options.query).toString();
    const { archive = null, body } = options;
    const type = archive !== null ? "application/x-tar" : body !== undefined ? "application/json" : null;
    let answer: Dispatcher.ResponseData;
    try {
      answer = await this.#agent.request({
        origin: "http://docker",
        method,
        path: query === "" ? path : `${path}?${query}`,
        headers: {
          ...(type !== null && { "content-type": type }),
          ...options.headers,
        },
        body: body === undefined ? archive : JSON.stringify(body),
        signal: options.signal ?? null,
        headersTimeout: options.headersTimeoutMs ?? HEADERS_TIMEOUT_MS,
        // Streams of events and logs are silent for any time.
        bodyTimeout: 0,
      });
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      throw unreachable(this.socket, error);
    }
    if (answer.statusCode < 400) return answer.body;
    throw new DockerError(answer.statusCode, messageIn(await this.#read(answer.body, path)));
  }

  async #read(body: Dispatcher.ResponseData["body"], path: string): Promise<string> {
    return readBoundedText(body, { maxBytes: MAX_ANSWER_BYTES, timeoutMs: ANSWER_MS }).catch((error) => this.#failed(path, error));
  }

  #parse(text: string, path: string): unknown {
    try {
      return parseBoundedJson(text);
    } catch (error) {
      return this.#failed(path, error);
    }
  }

  #failed(path: string, error: unknown): never {
    throw new PlatformError(
      "sandbox.lost",
      `the answer of the Docker daemon at ${this.socket} to ${path} is not read: ${messageOf(error)}`,
      {
        cause: error,
      },
    );
  }
}

/** The version to speak; null if the daemon is too old. */
export function chooseVersion(newest: string, oldest: string): string | null {
  if (compare(newest, OLDEST) < 0) return null;
  if (compare(oldest, NEWEST) > 0) return oldest;
  return compare(newest, NEWEST) < 0 ? newest : NEWEST;
}

function compare(a: string, b: string): number {
  const [majorA = 0, minorA = 0] = a.split(".").map(Number);
  const [majorB = 0, minorB = 0] = b.split(".").map(Number);
  return majorA - majorB || minorA - minorB;
}

function messageIn(text: string): string {
  try {
    return String((parseBoundedJson(text) as Json).message ?? text);
  } catch {
    return text.trim();
  }
}

function unreachable(socket: string, error: unknown): PlatformError {
  const code = (error as NodeJS.ErrnoException).code;
  const advice =
    code === "EACCES"
      ? "this user may not connect to it; add the user to the group docker, or use a rootless daemon"
      : "start Docker or Podman, or name another socket with --docker-socket";
  return new PlatformError("sandbox.lost", `the Docker daemon at ${socket} does not answer (${messageOf(error)}): ${advice}`, {
    cause: error,
  });
}
