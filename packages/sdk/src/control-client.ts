import { controlEnvelope, type ErrorCode } from "@aenv/contract";
import { defaultTransport } from "#transport";
import { exactUrl } from "./addresses.ts";
import { type Clock, systemClock } from "./clock.ts";
import { EnvironmentError, ValidationError } from "./errors.ts";
import { preview, readFailure } from "./failure.ts";
import { StatusError, type Transport, TransportError } from "./http.ts";
import { JsonClient } from "./json-client.ts";
import { networkError } from "./network-failure.ts";
import type { RetryRule } from "./retry.ts";
import { readSettings } from "./settings.ts";

export interface ControlClientOptions {
  /** Sent as a bearer token; `AENV_API_KEY` if absent, none if empty. */
  readonly apiKey?: string;
  /** For each attempt; 30 s if absent. */
  readonly timeoutMs?: number;
  /** How often a request that may be repeated is repeated; 3 if absent. */
  readonly maxRetries?: number;
  readonly transport?: Transport;
  readonly clock?: Clock;
}

export interface ControlCall {
  readonly method: string;
  readonly path: string;
  /** What is being done, for the error's sentence. */
  readonly doing: string;
  readonly rule: RetryRule;
  /** What a 404 without a code of its own means here, and a 409. */
  readonly notFound: ErrorCode;
  readonly conflict?: ErrorCode;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  readonly deadlineAt?: number | undefined;
}

/** Speaks the control plane's and the hub's envelope `{success, code, message, data}`. */
export class ControlClient {
  readonly clock: Clock;
  readonly #baseUrl: string;
  readonly #client: JsonClient;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;

  constructor(baseUrl: string, options: ControlClientOptions = {}) {
    const { transport = defaultTransport, clock = systemClock, maxRetries = 3 } = options;
    const apiKey = options.apiKey ?? readSettings().apiKey;
    this.clock = clock;
    this.#baseUrl = exactUrl(baseUrl);
    this.#client = new JsonClient({ transport, clock, maxRetries });
    this.#headers = !apiKey ? {} : { authorization: `Bearer ${apiKey}` };
    this.#timeoutMs = options.timeoutMs ?? 30_000;
  }

  /** The envelope's data. */
  async send(call: ControlCall): Promise<unknown> {
    let body: unknown;
    try {
      const { method, rule, signal, deadlineAt } = call;
      const headers = { ...this.#headers, ...call.headers };
      body = await this.#client.send({
        method,
        url: this.#baseUrl + call.path,
        headers,
        rule,
        body: call.body,
        signal,
        deadlineAt,
        timeoutMs: this.#timeoutMs,
      });
    } catch (error) {
      throw this.#explain(call, error);
    }
    const envelope = controlEnvelope.safeParse(body);
    if (!envelope.success)
      throw new ValidationError(`could not ${call.doing}: unexpected answer ${preview(JSON.stringify(body) ?? "(empty)")}`);
    // A failure under a status of 200: the original's clients look at `success` alone.
    if (!envelope.data.success) throw this.#explain(call, new StatusError(envelope.data.code || 500, JSON.stringify(body), null));
    return envelope.data.data;
  }

  #explain(call: ControlCall, error: unknown): unknown {
    if (error instanceof StatusError) {
      const { message, code, isNamed, ...rest } = readFailure(error, call.notFound);
      const isConflict = !isNamed && error.status === 409 && call.conflict !== undefined;
      return new EnvironmentError(`could not ${call.doing}: ${message}`, {
        ...rest,
        code: isConflict ? call.conflict : code,
        cause: error,
      });
    }
    if (!(error instanceof TransportError)) return error;
    return networkError(`could not ${call.doing}`, error, call.rule);
  }
}
