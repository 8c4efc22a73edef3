import { type CallToolResult, callToolResult, isObject, parseBoundedJson } from "@aenv/contract";
import type { AnswerHeaders, ExchangeEnding, ExchangeRecorder } from "./forward.ts";
import { eventsOf } from "./json-events.ts";

/** A tool call that a program made, and its result; null if none came. */
export interface RecordedToolCall {
  readonly name: string;
  readonly arguments: Record<string, unknown>;
  readonly result: CallToolResult | null;
  /** Set if no result came because the sandbox or the server failed, not because the program left. */
  readonly isLost?: true;
}

export interface McpListener {
  /** Called before a tool call is passed on; may throw to refuse it. */
  begin(name: string): void | Promise<void>;
  end(call: RecordedToolCall): void;
}

/** Records the tool calls of one MCP request. Everything else passes without a record. */
export class McpRecorder implements ExchangeRecorder {
  readonly #listener: McpListener;
  readonly #calls = new Map<string | number, Pick<RecordedToolCall, "name" | "arguments">>();
  readonly #decoder = new TextDecoder();
  /** What of the answer is not recorded yet. */
  #text = "";
  /** The last characters of it, in which a blank line may begin. */
  #tail = "";
  #isStream = false;
  #status = 0;

  constructor(listener: McpListener) {
    this.#listener = listener;
  }

  async request(body: Buffer): Promise<Buffer> {
    for (const message of messagesIn(body.toString("utf8"))) {
      const { id, method, params } = message;
      if (method !== "tools/call" || (typeof id !== "string" && typeof id !== "number") || !isObject(params)) continue;
      const name = String(params.name);
      await this.#listener.begin(name);
      this.#calls.set(id, { name, arguments: isObject(params.arguments) ? params.arguments : {} });
    }
    return body;
  }

  answer(status: number, headers: AnswerHeaders): void {
    this.#status = status;
    this.#isStream = headers["content-type"]?.includes("event-stream") === true;
  }

  piece(bytes: Buffer): void {
    if (this.#calls.size === 0) return;
    const added = this.#decoder.decode(bytes, { stream: true });
    this.#text += added;
    const recent = this.#tail + added;
    this.#tail = recent.slice(-3);
    // An event of many pieces is searched once, not again with each piece.
    if (!this.#isStream || !/\n\r?\n/.test(recent)) return;
    // A program may make its next call as soon as it has read an event, before the stream ends: the event is recorded first.
    const events = /^.*\r?\n\r?\n/s.exec(this.#text)?.[0];
    if (events === undefined) return;
    this.#text = this.#text.slice(events.length);
    this.#record(eventsOf(events));
  }

  end({ kind }: ExchangeEnding): void {
    this.#record(this.#isStream ? eventsOf(this.#text) : messagesIn(this.#text));
    const isLost = kind === "broken" || (kind === "whole" && this.#status >= 500);
    for (const call of this.#calls.values()) this.#listener.end({ ...call, result: null, ...(isLost && { isLost }) });
  }

  #record(messages: readonly Record<string, unknown>[]): void {
    for (const { id, result, error } of messages) {
      const call = typeof id === "string" || typeof id === "number" ? this.#calls.get(id) : undefined;
      const parsed = callToolResult.safeParse(isObject(error) ? failed(error) : result);
      if (call === undefined || !parsed.success) continue;
      this.#calls.delete(id as string | number);
      this.#listener.end({ ...call, result: parsed.data });
    }
  }
}

/** An error of the protocol, such as an unknown tool, as a result that says so. */
function failed({ message }: Record<string, unknown>): CallToolResult {
  return { content: [{ type: "text", text: String(message) }], isError: true };
}

function messagesIn(text: string): Record<string, unknown>[] {
  try {
    const value = parseBoundedJson(text);
    return (Array.isArray(value) ? value : [value]).filter(isObject);
  } catch {
    return [];
  }
}
