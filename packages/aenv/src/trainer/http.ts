import { setTimeout as pause } from "node:timers/promises";
import { messageOf, parseBoundedJson, readBoundedText } from "@aenv/contract";

/** A trainer's server could not be reached, or refused a request. */
export class TrainerError extends Error {
  override readonly name = "TrainerError";
  /** The HTTP status; null if no answer came. */
  readonly status: number | null;

  constructor(message: string, status: number | null, cause?: unknown) {
    super(message, { cause });
    this.status = status;
  }

  /** Whether another attempt may succeed. */
  get mayPass(): boolean {
    return this.status === null || this.status === 429 || this.status >= 500;
  }
}

const TIMEOUT_MS = 60_000;
/** Trainers answer with states and numbers of rows, not with rows. */
const MAX_ANSWER_BYTES = 16 * 1_024 ** 2;
const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 250;

/** Calls the HTTP API of a trainer's server, with its key. */
export class TrainerHttp {
  readonly url: string;
  readonly #key: string | null;

  constructor(url: string, key: string | null) {
    this.url = url.replace(/\/+$/, "");
    this.#key = key;
  }

  /** Calls until an answer comes, a few times. For requests that may arrive twice. */
  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.callOnce(method, path, body);
      } catch (error) {
        if (!(error instanceof TrainerError) || !error.mayPass || attempt === ATTEMPTS) throw error;
        await pause(FIRST_PAUSE_MS * 2 ** attempt);
      }
    }
  }

  async callOnce(method: string, path: string, body?: unknown): Promise<unknown> {
    const url = this.url + path;
    let response: Response;
    let text: string;
    try {
      response = await fetch(url, {
        method,
        headers: { "content-type": "application/json", ...(this.#key !== null && { authorization: `Bearer ${this.#key}` }) },
        body: body === undefined ? null : JSON.stringify(body),
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      text = await readBoundedText(response.body, { maxBytes: MAX_ANSWER_BYTES });
    } catch (error) {
      const reason = error instanceof Error && error.cause !== undefined ? error.cause : error;
      throw new TrainerError(`${method} ${url} got no answer: ${messageOf(reason)}`, null, error);
    }
    if (!response.ok) throw new TrainerError(`${method} ${url} answered ${response.status}: ${text.slice(0, 300)}`, response.status);
    try {
      return text === "" ? null : parseBoundedJson(text);
    } catch (error) {
      throw new TrainerError(`${method} ${url} answered with something that is not JSON: ${text.slice(0, 100)}`, response.status, error);
    }
  }
}
