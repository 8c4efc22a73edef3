import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { PlatformError } from "@aenv/contract";
import { type Frame, FrameReader, frameOf, opcodes, WebSocketError } from "./frames.ts";

export interface WebSocketLimits {
  readonly maxMessageBytes: number;
  /** Messages that may wait for their answers. */
  readonly maxWaiting: number;
  /** How often an idle client is asked whether it is still there. One that does not answer until the next time is gone. */
  readonly pingEveryMs: number;
  /** How long a client may take to read what was sent to it, and to close. */
  readonly drainMs: number;
}

export const webSocketLimits: WebSocketLimits = {
  maxMessageBytes: 16 * 1024 ** 2,
  maxWaiting: 64,
  pingEveryMs: 30_000,
  drainMs: 60_000,
};

/** Answers a message of the client; null sends nothing. */
export type Respond = (text: string) => Promise<string | null>;

const ACCEPT_KEY = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** A server's side of a WebSocket (RFC 6455) that carries texts, one answer for each message, in order. */
export class WebSocketConnection {
  readonly #socket: Duplex;
  readonly #limits: WebSocketLimits;
  readonly #respond: Respond;
  readonly #reader: FrameReader;
  readonly #waiting: string[] = [];
  readonly #gone = Promise.withResolvers<void>();
  #pieces: Buffer[] = [];
  #piecesLength = 0;
  #isText = false;
  #waitingLength = 0;
  #isAnswering = false;
  #isClosing = false;
  #hasBeenHeard = true;

  private constructor(socket: Duplex, limits: WebSocketLimits, respond: Respond) {
    this.#socket = socket;
    this.#limits = limits;
    this.#respond = respond;
    this.#reader = new FrameReader(limits.maxMessageBytes);
  }

  /** Accepts the handshake. Throws if it is none. */
  static accept(request: IncomingMessage, socket: Duplex, first: Buffer, respond: Respond, limits = webSocketLimits): WebSocketConnection {
    const { "sec-websocket-key": key, "sec-websocket-version": version } = request.headers;
    if (request.method !== "GET" || key === undefined || version !== "13")
      throw new PlatformError("request.invalid", "this is not the handshake of a WebSocket of version 13");
    const accept = createHash("sha1")
      .update(key + ACCEPT_KEY)
      .digest("base64");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
    );
    const connection = new WebSocketConnection(socket, limits, respond);
    connection.#begin(first);
    return connection;
  }

  /** Resolves when the connection has ended, in whatever way. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  /** Sends a text; it does not wait until it is read. */
  send(text: string): void {
    this.#write(opcodes.text, Buffer.from(text));
  }

  /** Says good-bye. Messages that wait are not answered any more. */
  close(code: number, reason = ""): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    this.#waiting.length = 0;
    const payload = Buffer.alloc(2 + Math.min(Buffer.byteLength(reason), 123));
    payload.writeUInt16BE(code);
    payload.write(reason, 2);
    this.#write(opcodes.close, payload);
    this.#end();
  }

  #end(): void {
    this.#isClosing = true;
    this.#socket.end();
    setTimeout(() => this.#socket.destroy(), this.#limits.drainMs).unref();
  }

  #begin(first: Buffer): void {
    const socket = this.#socket;
    const pings = setInterval(() => this.#ping(), this.#limits.pingEveryMs).unref();
    socket.on("error", () => {});
    socket.once("close", () => {
      clearInterval(pings);
      this.#isClosing = true;
      this.#gone.resolve();
    });
    // Half-closed by the client: it can ask nothing any more.
    socket.once("end", () => this.#end());
    socket.on("data", (bytes: Buffer) => this.#read(bytes));
    if (first.length > 0) this.#read(first);
    if (socket.destroyed) this.#gone.resolve();
  }

  #ping(): void {
    if (!this.#hasBeenHeard) return void this.#socket.destroy();
    this.#hasBeenHeard = false;
    this.#write(opcodes.ping, Buffer.alloc(0));
  }

  #read(bytes: Buffer): void {
    this.#hasBeenHeard = true;
    // What comes after a good-bye is discarded, so that a client that still sends can read the reason.
    if (this.#isClosing) return;
    try {
      for (const frame of this.#reader.push(bytes)) this.#take(frame);
    } catch (error) {
      if (!(error instanceof WebSocketError)) throw error;
      this.close(error.code, error.message);
    }
  }

  #take({ opcode, payload, isLast }: Frame): void {
    if (this.#isClosing) return;
    if (opcode === opcodes.ping) this.#write(opcodes.pong, payload);
    else if (opcode === opcodes.close) this.close(payload.length >= 2 ? Math.max(1000, payload.readUInt16BE()) : 1000);
    else if (opcode !== opcodes.pong) this.#takePiece(opcode, payload, isLast);
  }

  #takePiece(opcode: number, payload: Buffer, isLast: boolean): void {
    const isFirst = opcode !== opcodes.continuation;
    if (isFirst === this.#pieces.length > 0) throw new WebSocketError(1002, "a message began inside another, or a piece has no message");
    if (isFirst) this.#isText = opcode === opcodes.text;
    this.#pieces.push(payload);
    this.#piecesLength += payload.length;
    const { maxMessageBytes, maxWaiting } = this.#limits;
    if (this.#piecesLength > maxMessageBytes)
      throw new WebSocketError(1009, `a message of more than ${maxMessageBytes} bytes is not accepted`);
    if (!isLast) return;
    const message = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#piecesLength = 0;
    if (!this.#isText) throw new WebSocketError(1003, "only texts are understood");
    this.#waitingLength += message.length;
    if (this.#waiting.length >= maxWaiting || this.#waitingLength > 2 * maxMessageBytes)
      throw new WebSocketError(1008, "too many messages wait for their answers");
    this.#waiting.push(textOf(message));
    void this.#answer();
  }

  /** Answers what waits, one after the other. The next one waits until the client has read enough of the answers before. */
  async #answer(): Promise<void> {
    if (this.#isAnswering) return;
    this.#isAnswering = true;
    for (let text = this.#waiting.shift(); text !== undefined; text = this.#waiting.shift()) {
      this.#waitingLength -= Buffer.byteLength(text);
      const answer = await this.#respond(text).catch(() => this.close(1011, "an internal error") ?? null);
      if (this.#isClosing) break;
      if (answer !== null) this.send(answer);
      await this.#drained();
    }
    this.#isAnswering = false;
  }

  #drained(): Promise<void> | undefined {
    const socket = this.#socket;
    if (!socket.writableNeedDrain || socket.destroyed) return undefined;
    return new Promise((resolve) => {
      const giveUp = setTimeout(() => socket.destroy(), this.#limits.drainMs);
      const done = () => {
        clearTimeout(giveUp);
        socket.off("drain", done).off("close", done);
        resolve();
      };
      socket.on("drain", done).on("close", done);
    });
  }

  #write(opcode: number, payload: Uint8Array): void {
    if (this.#socket.writableEnded || this.#socket.destroyed) return;
    this.#socket.write(frameOf(opcode, payload));
  }
}

function textOf(message: Buffer): string {
  try {
    return utf8.decode(message);
  } catch {
    throw new WebSocketError(1007, "the message is not UTF-8");
  }
}
