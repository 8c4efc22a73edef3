import type { ServerResponse } from "node:http";

/** One HTTP answer to one JSON-RPC request: plain JSON if it comes at once, a stream if it must speak earlier. */
export class Reply {
  readonly #response: ServerResponse;
  readonly #pingMs: number;
  #pings: NodeJS.Timeout | undefined;
  #isStream = false;
  #isDone = false;

  constructor(response: ServerResponse, pingMs: number) {
    this.#response = response;
    this.#pingMs = pingMs;
  }

  /** Turns the answer into a stream; comments on it keep silent clients and proxies from giving up. */
  openStream(): void {
    if (this.#isStream || this.#response.headersSent || this.#response.destroyed) return;
    this.#isStream = true;
    this.#response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
    });
    this.#response.flushHeaders();
    this.#pings = setInterval(() => this.#response.write(": ping\n\n"), this.#pingMs);
    this.#response.once("close", () => clearInterval(this.#pings));
  }

  /** Speaks before the result; what comes after it goes unheard. */
  notify(method: string, params: unknown): void {
    if (this.#isDone) return;
    let message: string;
    try {
      message = JSON.stringify({ jsonrpc: "2.0", method, params });
    } catch {
      // What JSON cannot carry goes unheard; the call that said it goes on.
      return;
    }
    this.openStream();
    this.#event(message);
  }

  /** The last word: a whole JSON-RPC message, already written as JSON. */
  finish(message: string): void {
    this.#isDone = true;
    clearInterval(this.#pings);
    if (this.#response.destroyed) return;
    if (this.#isStream) {
      this.#event(message);
      this.#response.end();
    } else {
      this.#response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(message) });
      this.#response.end(message);
    }
  }

  #event(message: string): void {
    if (!this.#response.destroyed) this.#response.write(`event: message\ndata: ${message}\n\n`);
  }
}
