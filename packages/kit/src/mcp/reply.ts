import type { ServerResponse } from "node:http";

/** The HTTP response to one JSON-RPC request: JSON, or an event stream if notifications come first or the call takes long. */
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

  /** Starts an event stream. Periodic comments keep clients and proxies from timing out. */
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

  /** Sends a notification before the result; ignored after it. */
  notify(method: string, params: unknown): void {
    if (this.#isDone) return;
    let message: string;
    try {
      message = JSON.stringify({ jsonrpc: "2.0", method, params });
    } catch {
      // A notification without a JSON form is dropped; the call goes on.
      return;
    }
    this.openStream();
    this.#event(message);
  }

  /** Sends the response: a complete JSON-RPC message as JSON text. */
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
