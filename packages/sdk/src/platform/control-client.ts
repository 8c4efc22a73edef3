import { controlEnvelope, type ErrorCode, fillPath, isPlatformError, type Route } from "@aenv/contract";
import { defaultTransport } from "#transport";
import { type Clock, systemClock } from "../async/clock.ts";
import { EnvironmentError, ValidationError } from "../errors/errors.ts";
import { preview, readFailure } from "../errors/failure.ts";
import { StatusError, TransportError } from "../errors/http-errors.ts";
import { networkError } from "../errors/network-failure.ts";
import { type RetryRule, retry } from "../errors/retry.ts";
import { type HttpAnswer, isSuccess, type Transport } from "../http/http.ts";
import { readJson } from "../http/json.ts";
import { JsonClient, withQuery } from "../http/json-client.ts";
import { exactUrl } from "./addresses.ts";
import { readSettings } from "./settings.ts";

export interface ControlClientOptions {
  /** Sent as a bearer token; `AENV_API_KEY` if absent, none if empty. */
  readonly apiKey?: string;
  /** Timeout of each attempt; 30 s if absent. */
  readonly timeoutMs?: number;
  /** How often a request that may be repeated is repeated; 3 if absent. */
  readonly maxRetries?: number;
  /** A larger answer is not read; 64 MiB if absent. Logs, files and archives are streams and have no such limit. */
  readonly maxAnswerBytes?: number;
  /** Values in the JSON of an answer; two million if absent. */
  readonly maxAnswerValues?: number;
  readonly transport?: Transport;
  readonly clock?: Clock;
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** Time of the client's clock after which no retry starts. */
  readonly deadlineAt?: number | undefined;
}

/** What a 404 and a 409 mean if their body has no code. */
export interface StatusCodes {
  readonly notFound: ErrorCode;
  readonly conflict?: ErrorCode;
}

export interface ControlCall extends RequestOptions, Partial<StatusCodes> {
  readonly method: string;
  readonly path: string;
  /** What is being done, for the error's sentence. */
  readonly doing: string;
  /** `once` for POST and `idempotent` for the others if absent. */
  readonly rule?: RetryRule;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** That of the client if absent. */
  readonly timeoutMs?: number | undefined;
}

export interface StreamCall extends Omit<ControlCall, "body"> {
  /** Creates the body for each attempt. */
  readonly stream?: () => AsyncIterable<Uint8Array>;
  /** The request fails when no byte was transferred for this long; 60 s if absent, no limit if null. */
  readonly idleTimeoutMs?: number | null | undefined;
}

/** Long, because the last megabytes of an upload may be in the system's buffers for a while on a slow connection. */
const IDLE_TIMEOUT_MS = 60_000;

/** Method and path of a request to a route. */
export function requestTo(
  route: Route,
  names: Readonly<Record<string, string>> = {},
  query: Readonly<Record<string, unknown>> = {},
): Pick<ControlCall, "method" | "path"> {
  return { method: route.method, path: withQuery(fillPath(route, names), query) };
}

/** False if the server says that there was nothing to delete. */
export async function isDeleted(deleting: Promise<unknown>, missing: ErrorCode): Promise<boolean> {
  try {
    await deleting;
    return true;
  } catch (error) {
    if (isPlatformError(error, missing)) return false;
    throw error;
  }
}

/** HTTP client for the envelope `{success, code, message, data}` of the control plane and the hub. */
export class ControlClient {
  readonly clock: Clock;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  readonly #codes: StatusCodes;
  readonly #baseUrl: string;
  readonly #transport: Transport;
  readonly #maxRetries: number;
  readonly #client: JsonClient;
  readonly #timeoutMs: number;
  readonly #maxAnswerBytes: number | undefined;

  constructor(baseUrl: string, codes: StatusCodes, options: ControlClientOptions = {}) {
    const { transport = defaultTransport, clock = systemClock, maxRetries = 3, maxAnswerBytes, maxAnswerValues } = options;
    const apiKey = options.apiKey ?? readSettings().apiKey;
    this.clock = clock;
    this.#codes = codes;
    this.#baseUrl = exactUrl(baseUrl);
    this.#transport = transport;
    this.#maxRetries = maxRetries;
    this.#client = new JsonClient({ transport, clock, maxRetries, maxAnswerBytes, maxAnswerValues });
    this.headers = !apiKey ? {} : { authorization: `Bearer ${apiKey}` };
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#maxAnswerBytes = maxAnswerBytes;
  }

  /** The address of a connection that is no request, such as a WebSocket. */
  urlOf(path: string): string {
    return this.#baseUrl + path;
  }

  /** The envelope's data. */
  async send(call: ControlCall): Promise<unknown> {
    let body: unknown;
    try {
      const { method, signal, deadlineAt } = call;
      const headers = { ...this.headers, ...call.headers };
      body = await this.#client.send({
        method,
        url: this.#baseUrl + call.path,
        headers,
        rule: ruleOf(call),
        body: call.body,
        signal,
        deadlineAt,
        timeoutMs: call.timeoutMs ?? this.#timeoutMs,
      });
    } catch (error) {
      throw this.#explain(call, error);
    }
    return this.#unwrap(call, body);
  }

  /**
   * The response with its body unread: for archives and event streams. It has no timeout while bytes are transferred; the
   * caller's signal aborts it.
   */
  async open(call: StreamCall): Promise<HttpAnswer> {
    const { method, signal, deadlineAt, stream, idleTimeoutMs = IDLE_TIMEOUT_MS } = call;
    const attempt = async () => {
      const answer = await this.#transport.send({
        method,
        url: this.#baseUrl + call.path,
        headers: { ...this.headers, ...call.headers },
        ...(stream !== undefined && { body: stream() }),
        ...(signal && { signal }),
        ...(idleTimeoutMs !== null && { idleTimeoutMs }),
      });
      if (!isSuccess(answer.status)) throw await StatusError.of(answer);
      return answer;
    };
    const explain = (error: unknown) => Promise.reject(this.#explain(call, error));
    const answer = await retry(attempt, { rule: ruleOf(call), signal, deadlineAt, clock: this.clock, maxRetries: this.#maxRetries }).catch(
      explain,
    );
    return {
      status: answer.status,
      header: (name) => answer.header(name),
      text: (maxBytes = this.#maxAnswerBytes) => answer.text(maxBytes).catch(explain),
      chunks: () => this.#chunks(call, answer),
    };
  }

  /** Sends a stream and returns the data of the response's envelope. */
  async upload(call: StreamCall): Promise<unknown> {
    const text = await (await this.open(call)).text(this.#maxAnswerBytes);
    try {
      return this.#unwrap(call, readJson(text, { method: call.method, url: this.#baseUrl + call.path }));
    } catch (cause) {
      if (!(cause instanceof SyntaxError)) throw cause;
      throw new ValidationError(`could not ${call.doing}: unexpected answer ${preview(text) || "(empty)"}`, { cause });
    }
  }

  async *#chunks(call: StreamCall, answer: HttpAnswer): AsyncGenerator<Uint8Array> {
    try {
      yield* answer.chunks();
    } catch (error) {
      throw this.#explain(call, error);
    }
  }

  #unwrap(call: StreamCall, body: unknown): unknown {
    const envelope = controlEnvelope.safeParse(body);
    if (!envelope.success)
      throw new ValidationError(`could not ${call.doing}: unexpected answer ${preview(JSON.stringify(body) ?? "(empty)")}`);
    // A failure with status 200: the original's clients check only `success`.
    if (!envelope.data.success) throw this.#explain(call, new StatusError(envelope.data.code || 500, JSON.stringify(body), null));
    return envelope.data.data;
  }

  #explain(call: StreamCall, error: unknown): unknown {
    if (error instanceof StatusError) {
      const { notFound, conflict } = { ...this.#codes, ...call };
      const { message, code, isNamed, ...rest } = readFailure(error, notFound);
      const isConflict = !isNamed && error.status === 409 && conflict !== undefined;
      return new EnvironmentError(`could not ${call.doing}: ${message}`, { ...rest, code: isConflict ? conflict : code, cause: error });
    }
    if (!(error instanceof TransportError)) return error;
    return networkError(`could not ${call.doing}`, error, ruleOf(call));
  }
}

function ruleOf({ method, rule = method === "POST" ? "once" : "idempotent" }: StreamCall): RetryRule {
  return rule;
}
