import type { Clock } from "../async/clock.ts";
import { AnswerLimitError, ValidationError } from "../errors/errors.ts";
import { preview } from "../errors/failure.ts";
import { StatusError } from "../errors/http-errors.ts";
import { type RetryRule, retry } from "../errors/retry.ts";
import { Deadline } from "./deadline.ts";
import { type HttpAnswer, isSuccess, MAX_ANSWER_BYTES, type Transport } from "./http.ts";
import { readJson, writeJson } from "./json.ts";

export interface JsonCall {
  readonly method: string;
  readonly url: string;
  readonly rule: RetryRule;
  /** Timeout of each attempt. */
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  readonly deadlineAt?: number | undefined;
  /** Overrides the client's limit, for callers that poll anyway. */
  readonly maxRetries?: number;
}

export interface JsonClientOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly maxRetries: number;
  /** How long refused connections are retried; as long as any other failure if absent. */
  readonly refusedLimitMs?: number | undefined;
  /** A larger answer is not read; 64 MiB if absent. */
  readonly maxAnswerBytes?: number | undefined;
  /** Values in the JSON of an answer; two million if absent. */
  readonly maxAnswerValues?: number | undefined;
}

/** Sends and receives JSON, with retries. Throws StatusError, TransportError, or the signal's reason. */
export class JsonClient {
  readonly #options: JsonClientOptions;

  constructor(options: JsonClientOptions) {
    this.#options = options;
  }

  get maxAnswerBytes(): number {
    return this.#options.maxAnswerBytes ?? MAX_ANSWER_BYTES;
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  /** The response's JSON; undefined when the body is empty. */
  async send(call: JsonCall): Promise<unknown> {
    const body = call.body === undefined ? undefined : writeJson(call.body);
    const text = await retry(() => this.#attempt(call, body), {
      ...this.#options,
      ...call,
      maxRetries: call.maxRetries ?? this.#options.maxRetries,
    });
    if (text.trim() === "") return undefined;
    try {
      return readJson(text, call, this.#options.maxAnswerValues);
    } catch (cause) {
      if (cause instanceof AnswerLimitError) throw cause;
      throw new ValidationError(`${call.method} ${call.url} did not answer with JSON: ${preview(text)}`, { cause });
    }
  }

  async #attempt(call: JsonCall, body: string | undefined): Promise<string> {
    const deadline = new Deadline(call.timeoutMs, call.signal);
    try {
      const answer = await this.#options.transport.send({
        method: call.method,
        url: call.url,
        headers: { accept: "application/json", ...(body !== undefined && { "content-type": "application/json" }), ...call.headers },
        ...(body !== undefined && { body }),
        signal: deadline.signal,
      });
      return await read(answer, this.#options.maxAnswerBytes);
    } finally {
      deadline.close();
    }
  }
}

async function read(answer: HttpAnswer, maxBytes: number | undefined): Promise<string> {
  if (!isSuccess(answer.status)) throw await StatusError.of(answer);
  return answer.text(maxBytes);
}

/** The URL with a query string. Undefined and null are left out; objects are written as JSON. */
export function withQuery(url: string, values: Readonly<Record<string, unknown>>): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined || value === null) continue;
    query.set(key, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  const text = query.toString();
  return text === "" ? url : `${url}${url.includes("?") ? "&" : "?"}${text}`;
}
