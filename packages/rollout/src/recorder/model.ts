import { type Conversation, isObject, messageOf, parseBoundedJson } from "@aenv/contract";
import { chatDialect, TOKEN_FIELDS } from "../models/chat/dialect.ts";
import type { Dialect } from "../models/dialect.ts";
import { Busy, failureOf, RefusedByModel, refusal } from "../models/http.ts";
import { messagesDialect } from "../models/messages/dialect.ts";
import { responsesDialect } from "../models/responses/dialect.ts";
import type { AgentMessage } from "../player/agent.ts";
import { ModelError } from "../player/failure.ts";
import type { AnswerHeaders, ExchangeEnding, ExchangeRecorder } from "./forward.ts";
import { eventsOf } from "./json-events.ts";

/** One exchange with a model: what the program's request showed it, and the message that came back. */
export interface RecordedExchange {
  /** Null if the request cannot be read. */
  readonly seen: Conversation | null;
  /** The id of an earlier answer whose conversation the endpoint puts before what was seen. */
  readonly continues: string | null;
  readonly written: AgentMessage;
}

export interface ModelListener {
  /** May throw to refuse a request. */
  begin(): void;
  end(exchange: RecordedExchange): void;
  /** Called instead of `end` if no answer came. Null if that is the program's doing: it left, or its request is wrong. */
  fail(error: ModelError | null): void;
}

export interface ModelRecorderOptions {
  /** The path of the request after the base URL. */
  readonly api: string;
  readonly url: string;
  readonly wantsTokens: boolean;
  readonly listener: ModelListener;
  /** Called when the endpoint says that it is busy, with the pause it asks for. */
  readonly onBusy?: ((pauseMs: number) => void) | undefined;
}

/** The endpoint does not take the key or does not have the model: no program can play there. Other refusals are about the request. */
const REFUSED_ACCESS: ReadonlySet<number> = new Set([401, 402, 403, 404]);
const DEFAULT_PAUSE_MS = 1_000;

const dialects: Readonly<Record<string, Dialect>> = {
  "chat/completions": chatDialect,
  responses: responsesDialect,
  messages: messagesDialect,
};

/** Records the exchange of one request to a model. Of a failed answer, only the failure is told. Other allowed routes pass without a record. */
export class ModelRecorder implements ExchangeRecorder {
  readonly #options: ModelRecorderOptions;
  readonly #dialect: Dialect | undefined;
  readonly #pieces: Buffer[] = [];
  #request: Record<string, unknown> | null = null;
  /** Null until an answer comes. */
  #status: number | null = null;
  #headers: AnswerHeaders = {};

  constructor(options: ModelRecorderOptions) {
    this.#options = options;
    this.#dialect = dialects[options.api];
  }

  request(body: Buffer): Buffer {
    if (this.#dialect === undefined) return body;
    this.#options.listener.begin();
    const value = parsed(body.toString("utf8"));
    if (!isObject(value)) return body;
    this.#request = value;
    // Only the chat API has them. The request of a program stays what it is otherwise.
    return this.#options.wantsTokens && this.#dialect === chatDialect ? Buffer.from(JSON.stringify({ ...value, ...TOKEN_FIELDS })) : body;
  }

  answer(status: number, headers: AnswerHeaders): void {
    this.#status = status;
    this.#headers = headers;
  }

  piece(bytes: Buffer): void {
    if (this.#dialect !== undefined) this.#pieces.push(bytes);
  }

  end(ending: ExchangeEnding): void {
    if (this.#dialect === undefined) return;
    const { listener } = this.#options;
    const written = this.#written(this.#dialect, ending);
    if (written instanceof ModelError || written === null || this.#request === null) {
      listener.fail(written instanceof ModelError ? written : null);
      return;
    }
    const { previous_response_id: previous } = this.#request;
    const seen = this.#dialect.conversationOf(this.#request);
    listener.end({ seen, continues: typeof previous === "string" ? previous : null, written });
  }

  /** What is wrong with the endpoint if it is that; null if the program has left in the middle of the answer, or its request is wrong. */
  #written(dialect: Dialect, ending: ExchangeEnding): AgentMessage | ModelError | null {
    const { url } = this.#options;
    const text = Buffer.concat(this.#pieces).toString("utf8");
    if (this.#status === null) return unanswered(url, ending);
    if (this.#status < 200 || this.#status >= 300) return this.#refused(this.#status, text);
    try {
      return this.#read(dialect, text);
    } catch (cause) {
      if (ending.kind === "left") return null;
      if (ending.kind === "broken") return failureOf(url, ending.error);
      return cause instanceof ModelError
        ? cause
        : new ModelError(`the answer of ${url} cannot be read: ${messageOf(cause)}`, { retryable: true, cause });
    }
  }

  /**
   * Throws if the answer is incomplete or not one of the API. A client may leave a stream as soon as it has read the last event, so what
   * counts is whether the events are complete, not whether the connection was closed by the endpoint.
   */
  #read(dialect: Dialect, text: string): AgentMessage {
    if (this.#headers["content-type"]?.includes("event-stream") !== true) return dialect.read(dialect.parse(text));
    const stream = dialect.openStream();
    for (const event of eventsOf(text)) stream.add(event);
    if (stream.answer === null) throw new ModelError("the model's stream broke off before the answer was complete", { retryable: true });
    return dialect.read(stream.answer);
  }

  #refused(status: number, text: string): ModelError | null {
    const { url, onBusy } = this.#options;
    const refused = refusal(url, status, this.#headers["retry-after"], text);
    if (refused instanceof Busy) {
      onBusy?.(refused.pauseMs ?? DEFAULT_PAUSE_MS);
      return new ModelError(`${url} was busy (${status}) when the program gave up`, { retryable: true });
    }
    return refused instanceof RefusedByModel && !REFUSED_ACCESS.has(status) ? null : refused;
  }
}

/** A program that gives up has waited for an endpoint that says nothing. */
function unanswered(url: string, ending: ExchangeEnding): ModelError {
  if (ending.kind === "broken") return failureOf(url, ending.error);
  return new ModelError(`${url} had not answered when the program left`, { retryable: true });
}

/** Undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch {
    return undefined;
  }
}
