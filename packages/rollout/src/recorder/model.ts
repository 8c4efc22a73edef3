import { isObject } from "@aenv/contract";
import type { AgentMessage } from "../agents/agent.ts";
import { chatDialect } from "../models/chat/dialect.ts";
import type { Dialect } from "../models/dialect.ts";
import { messagesDialect } from "../models/messages/dialect.ts";
import { responsesDialect } from "../models/responses/dialect.ts";
import type { ExchangeRecorder } from "./forward.ts";
import { eventsOf } from "./json-events.ts";

/** One exchange with a model: the request as the program sent it, and the message that came back. */
export interface RecordedExchange {
  readonly api: Dialect["api"];
  readonly request: Record<string, unknown>;
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
  readonly #pieces: Buffer[] = [];
  #request: Record<string, unknown> | null = null;
  #isStream = false;
  #isOk = false;

  constructor(api: string, listener: ModelListener) {
    this.#dialect = dialects[api];
    this.#listener = listener;
  }

  request(body: Buffer): void {
    if (this.#dialect === undefined) return;
    this.#listener.begin();
    const value: unknown = JSON.parse(body.toString("utf8"));
    if (isObject(value)) this.#request = value;
  }

  answer(status: number, contentType: string): void {
    this.#isOk = status >= 200 && status < 300;
    this.#isStream = contentType.includes("event-stream");
  }

  piece(bytes: Buffer): void {
    if (this.#isOk && this.#request !== null) this.#pieces.push(bytes);
  }

  end(isComplete: boolean): void {
    if (!isComplete || !this.#isOk || this.#dialect === undefined || this.#request === null) return;
    const answer = this.#answer(this.#dialect, Buffer.concat(this.#pieces).toString("utf8"));
    if (answer === null) return;
    this.#listener.end({ api: this.#dialect.api, request: this.#request, written: this.#dialect.read(answer) });
  }

  #answer(dialect: Dialect, text: string): unknown {
    if (!this.#isStream) return JSON.parse(text);
    const stream = dialect.openStream();
    for (const event of eventsOf(text)) stream.add(event);
    return stream.answer;
  }
}
