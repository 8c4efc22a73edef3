import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { encodeAnswer, parseQuery, TYPE_A } from "./dns-message.ts";
import type { NameDecision } from "./names.ts";

/** Queries of one sandbox that are answered at the same time; others are dropped, and its programs ask again. */
const MAX_OPEN_QUERIES = 64;
const RETRY_MS = 1_000;

/** Answers the queries for names that arrive at one address. Throws if the name cannot be resolved now. */
export type Decide = (name: string) => Promise<NameDecision>;

/** The name server of one sandbox, on the host's end of its cable. */
export class NameServer {
  readonly #socket: Socket;
  readonly #decide: Decide;
  #open = 0;

  static async open(address: string, port: number, decide: Decide): Promise<NameServer> {
    const socket = createSocket({ type: "udp4" });
    socket.bind(port, address);
    await once(socket, "listening");
    return new NameServer(socket, decide);
  }

  /** Waits while another process of the same home holds the address. */
  static async takeOver(address: string, port: number, decide: Decide, signal: AbortSignal): Promise<NameServer> {
    for (;;) {
      try {
        return await NameServer.open(address, port, decide);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
        await setTimeout(RETRY_MS, undefined, { signal, ref: false });
      }
    }
  }

  private constructor(socket: Socket, decide: Decide) {
    this.#socket = socket;
    this.#decide = decide;
    socket.unref();
    // An answer that cannot be delivered: the sandbox has gone.
    socket.on("error", () => {});
    socket.on("message", (message, from) => {
      if (this.#open >= MAX_OPEN_QUERIES) return;
      this.#open += 1;
      void this.#answer(message).then((answer) => {
        this.#open -= 1;
        if (answer !== null && !this.#isClosed) socket.send(answer, from.port, from.address, () => {});
      });
    });
  }

  #isClosed = false;

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close();
  }

  async #answer(message: Buffer): Promise<Buffer | null> {
    const question = parseQuery(message);
    if (question === null) return null;
    try {
      const decision = await this.#decide(question.name);
      if (decision.kind !== "answer") return encodeAnswer(question, "noSuchName");
      // Only IPv4: for other types the name exists and has no records.
      return encodeAnswer(question, "ok", question.type === TYPE_A ? decision.addresses : [], decision.ttlSeconds);
    } catch {
      return encodeAnswer(question, "failed");
    }
  }
}
