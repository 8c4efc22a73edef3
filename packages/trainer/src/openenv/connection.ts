import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { PlatformError } from "@aenv/contract";
import { answerPings } from "@aenv/server/trainer-services";
import { type RawData, type WebSocket, WebSocketServer } from "ws";

export interface WebSocketLimits {
  readonly maxMessageBytes: number;
  /** Messages that may wait for their answers. */
  readonly maxWaiting: number;
  /** How often an idle client is asked whether it is still there. One that does not answer until the next time is gone. */
  readonly pingEveryMs: number;
  /** How long a client may take to read what was sent to it, and to close. */
  readonly drainMs: number;
  /** A client with more bytes that it has not read is disconnected before more is sent to it. */
  readonly maxUnsentBytes: number;
}

export const webSocketLimits: WebSocketLimits = {
  maxMessageBytes: 16 * 1024 ** 2,
  maxWaiting: 64,
  pingEveryMs: 30_000,
  drainMs: 60_000,
  maxUnsentBytes: 64 * 1024 ** 2,
};

/** Answers a message of the client; null sends nothing. */
export type Respond = (text: string) => Promise<string | null>;

/** A server's side of a WebSocket that carries texts, one answer for each message, in order. */
export class WebSocketConnection {
  readonly #socket: WebSocket;
  readonly #limits: WebSocketLimits;
  readonly #respond: Respond;
  readonly #waiting: Buffer[] = [];
  readonly #gone = Promise.withResolvers<void>();
  #waitingLength = 0;
  #isAnswering = false;
  #isClosing = false;
  #hasBeenHeard = true;

  private constructor(socket: WebSocket, limits: WebSocketLimits, respond: Respond) {
    this.#socket = socket;
    this.#limits = limits;
    this.#respond = respond;
    const pings = setInterval(() => this.#ping(), limits.pingEveryMs).unref();
    socket.on("message", (data, isBinary) => this.#take(data, isBinary));
    answerPings(socket);
    socket.on("pong", () => {
      this.#hasBeenHeard = true;
    });
    // What breaks the protocol is answered with a code and closed by the library.
    socket.on("error", () => this.#endSoon());
    socket.once("close", () => {
      clearInterval(pings);
      this.#isClosing = true;
      this.#gone.resolve();
    });
  }

  /** Accepts the handshake. Throws if it is none. */
  static accept(request: IncomingMessage, socket: Duplex, first: Buffer, respond: Respond, limits = webSocketLimits): WebSocketConnection {
    const { "sec-websocket-key": key = "", "sec-websocket-version": version } = request.headers;
    if (request.method !== "GET" || !/^[+/\w]{22}==$/.test(key) || version !== "13")
      throw new PlatformError("request.invalid", "this is not the handshake of a WebSocket of version 13");
    const options = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      autoPong: false,
      maxPayload: limits.maxMessageBytes,
    };
    let accepted: WebSocketConnection | null = null;
    new WebSocketServer(options).handleUpgrade(request, socket, first, (one) => {
      accepted = new WebSocketConnection(one, limits, respond);
    });
    if (accepted === null) throw new PlatformError("request.invalid", "the handshake of the WebSocket is not valid");
    return accepted;
  }

  /** Resolves when the connection has ended, in whatever way. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  /** What the client has not read, beyond the buffers of the system. */
  get unsentBytes(): number {
    return this.#socket.bufferedAmount;
  }

  /** Sends a text. Resolves when it is on its way, or the connection has ended. */
  send(text: string): Promise<void> {
    if (this.unsentBytes > this.#limits.maxUnsentBytes) this.#socket.terminate();
    return new Promise((resolve) => this.#socket.send(text, () => resolve()));
  }

  /** Ends the connection with a code. Messages that wait are not answered any more. */
  close(code: number, reason = ""): void {
    if (this.#isClosing) return;
    this.#endSoon();
    this.#socket.close(code, reason);
  }

  #endSoon(): void {
    this.#isClosing = true;
    this.#waiting.length = 0;
    const end = setTimeout(() => this.#socket.terminate(), this.#limits.drainMs).unref();
    this.#socket.once("close", () => clearTimeout(end));
  }

  #ping(): void {
    if (this.#hasBeenHeard) this.#socket.ping();
    else this.#socket.terminate();
    this.#hasBeenHeard = false;
  }

  #take(data: RawData, isBinary: boolean): void {
    this.#hasBeenHeard = true;
    if (this.#isClosing) return;
    const { maxMessageBytes, maxWaiting } = this.#limits;
    const message = data as Buffer;
    this.#waitingLength += message.length;
    if (isBinary) this.close(1003, "only texts are understood");
    else if (this.#waiting.length >= maxWaiting || this.#waitingLength > 2 * maxMessageBytes) {
      this.close(1008, "too many messages wait for their answers");
    } else {
      this.#waiting.push(message);
      void this.#answer();
    }
  }

  /** Answers what waits, one after the other. The next one waits until the client has read enough of the answers before. */
  async #answer(): Promise<void> {
    if (this.#isAnswering) return;
    this.#isAnswering = true;
    for (let message = this.#waiting.shift(); message !== undefined; message = this.#waiting.shift()) {
      this.#waitingLength -= message.length;
      const answer = await this.#respond(message.toString("utf8")).catch(() => this.close(1011, "an internal error") ?? null);
      if (this.#isClosing) break;
      if (answer !== null) await this.#sendInTime(answer);
    }
    this.#isAnswering = false;
  }

  async #sendInTime(text: string): Promise<void> {
    const giveUp = setTimeout(() => this.#socket.terminate(), this.#limits.drainMs);
    await this.send(text);
    clearTimeout(giveUp);
  }
}
