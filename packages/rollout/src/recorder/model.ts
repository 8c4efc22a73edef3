import { type Conversation, isObject } from "@aenv/contract";
import type { AgentMessage } from "../agents/agent.ts";
import { chatDialect, TOKEN_FIELDS } from "../models/chat/dialect.ts";
import type { Dialect } from "../models/dialect.ts";
import { messagesDialect } from "../models/messages/dialect.ts";
import { responsesDialect } from "../models/responses/dialect.ts";
import type { ExchangeRecorder } from "./forward.ts";
import { eventsOf } from "./json-events.ts";

/** One exchange with a model: what the program's request showed it, and the message that came back. */
export interface RecordedExchange {
  /** Null if the request cannot be read. */
  readonly seen: Conversation | null;
  /** The id of an earlier answer whose conversation the endpoint puts before what was seen. */
  readonly continues: string | null;
  readonly written: AgentMessage;
}

/** `begin` may throw to refuse a request. */
export interface ModelListener {
  begin(): void;
  end(exchange: RecordedExchange): void;
}

const dialects: Readonly<Record<string, Dialect>> = {
  "chat/completions": chatDialect,
  responses: responsesDialect,
  messages: messagesDialect,
};

/** Records the exchange of one request to a model. Failed answers and other routes pass without a record. */
export class ModelRecorder implements ExchangeRecorder {
  readonly #dialect: Dialect | undefined;
  readonly #listener: ModelListener;
  readonly #wantsTokens: boolean;
  readonly #pieces: Buffer[] = [];
  #request: Record<string, unknown> | null = null;
  #isStream = false;
  #isOk = false;

  constructor(api: string, listener: ModelListener, wantsTokens: boolean) {
    this.#dialect = dialects[api];
    this.#listener = listener;
    this.#wantsTokens = wantsTokens;
  }

  request(body: Buffer): Buffer {
    if (this.#dialect === undefined) return body;
    this.#listener.begin();
    const value = parsed(body.toString("utf8"));
    if (!isObject(value)) return body;
    this.#request = value;
    // Only the chat API has them. The request of a program stays what it is otherwise.
    return this.#wantsTokens && this.#dialect === chatDialect ? Buffer.from(JSON.stringify({ ...value, ...TOKEN_FIELDS })) : body;
  }

  answer(status: number, contentType: string): void {
    this.#isOk = status >= 200 && status < 300;
    this.#isStream = contentType.includes("event-stream");
  }

  piece(bytes: Buffer): void {
    if (this.#isOk && this.#request !== null) this.#pieces.push(bytes);
  }

  end(): void {
    if (!this.#isOk || this.#dialect === undefined || this.#request === null) return;
    const written = this.#written(this.#dialect, Buffer.concat(this.#pieces).toString("utf8"));
    if (written === null) return;
    const { previous_response_id: previous } = this.#request;
    const seen = this.#dialect.conversationOf(this.#request);
    this.#listener.end({ seen, continues: typeof previous === "string" ? previous : null, written });
  }

  /**
   * Null if the answer is incomplete or not one of the API. A client may leave a stream as soon as it has read the last event, so what
   * counts is whether the events are complete, not whether the connection was closed by the endpoint.
   */
  #written(dialect: Dialect, text: string): AgentMessage | null {
    try {
      if (!this.#isStream) return dialect.read(dialect.parse(text));
      const stream = dialect.openStream();
      for (const event of eventsOf(text)) stream.add(event);
      return stream.answer === null ? null : dialect.read(stream.answer);
    } catch {
      return null;
    }
  }
}

/** Undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
