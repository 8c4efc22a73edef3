import { ReadLimitExceeded } from "./bounded-read.ts";

/** One event of a `text/event-stream`. */
export interface SseEvent {
  /** The event's type; `message` when the stream names none. */
  readonly event: string;
  readonly data: string;
}

/**
 * Decodes an event stream incrementally. Lines may end in CR, LF or CRLF, and a chunk may end anywhere,
 * also inside a character or between CR and LF. An incomplete event at the end of the stream is dropped.
 * An event of more characters than the limit throws a ReadLimitExceeded.
 */
export class SseDecoder {
  // TextDecoder also drops a byte order mark at the start, as the format requires.
  readonly #decoder = new TextDecoder();
  #line = "";
  #wasCr = false;
  #event = "";
  #data: string[] = [];
  #dataLength = 0;
  readonly #maxLength: number;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  /** The events that this chunk completes. */
  push(chunk: Uint8Array): SseEvent[] {
    const text = this.#decoder.decode(chunk, { stream: true });
    const events: SseEvent[] = [];
    let start = 0;
    if (text !== "" && this.#wasCr) {
      this.#wasCr = false;
      if (text.startsWith("\n")) start = 1;
    }
    for (let at = start; at < text.length; at++) {
      const char = text.charCodeAt(at);
      if (char !== LF && char !== CR) continue;
      const event = this.#endLine(this.#line + text.slice(start, at));
      if (event !== null) events.push(event);
      this.#line = "";
      if (char === CR) {
        if (at + 1 === text.length) this.#wasCr = true;
        else if (text.charCodeAt(at + 1) === LF) at++;
      }
      start = at + 1;
    }
    this.#line += text.slice(start);
    this.#checkLength(this.#line.length);
    return events;
  }

  /** An empty line completes an event; any other adds a field to it. */
  #endLine(line: string): SseEvent | null {
    if (line === "") return this.#endEvent();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    // A line counts one more: also empty ones are kept.
    this.#checkLength(value.length + 1);
    if (field === "data") {
      this.#data.push(value);
      this.#dataLength += value.length + 1;
    } else if (field === "event") this.#event = value;
    return null;
  }

  #endEvent(): SseEvent | null {
    const event = this.#data.length === 0 ? null : { event: this.#event || "message", data: this.#data.join("\n") };
    this.#event = "";
    this.#data = [];
    this.#dataLength = 0;
    return event;
  }

  #checkLength(added: number): void {
    if (this.#dataLength + added > this.#maxLength) throw new ReadLimitExceeded("bytes", this.#maxLength);
  }
}

/** The events of a whole stream that has been read. The empty line after the last one may be missing. */
export function sseEvents(text: string): SseEvent[] {
  return new SseDecoder(Number.POSITIVE_INFINITY).push(new TextEncoder().encode(`${text}\n\n`));
}

const LF = 10;
const CR = 13;
