import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ResponseHead } from "./fast-path/head.ts";
import { ResponseReader } from "./fast-path/response.ts";
import { readHandshake } from "./handshake.ts";

export interface TunnelLimits {
  /** How long the program may take to answer the handshake. */
  readonly handshakeMs: number;
  /** A tunnel through which nothing passes for so long is closed. */
  readonly idleMs: number;
}

export interface TunnelOptions extends TunnelLimits {
  /** The handshake as the program is sent it, and what the client has sent behind it. */
  readonly handshake: string;
  readonly first: Buffer;
  /** What the client is told when the program accepts. */
  readonly accepted: (head: ResponseHead) => string;
  /** The tunnel is closed after so long, whatever passes through it. */
  readonly lifeMs: number;
}

export interface TunnelEnd {
  readonly kind: "answered" | "left" | "lost" | "expired" | "idle";
  /** 0 if the client has been told nothing, and is still connected. */
  readonly status: number;
  readonly error?: Error;
}

/** How long one side may go on when the other has ended its own. */
const HALF_CLOSED_MS = 30_000;

/**
 * Carries a handshake to a program and, once that has accepted, bytes in both directions: unread, and no faster than the other side takes
 * them. When one side closes, so does the other. An answer that is not an acceptance is passed on as it is, and ends the call.
 */
export function tunnel(client: Duplex, program: Socket, options: TunnelOptions): Promise<TunnelEnd> {
  return new Promise((resolve) => {
    let status = 0;
    let isOver = false;
    /** The program has said all it will say, and the client has only to read it. */
    let isSaid = false;
    let failure = new Error("the program closed the connection");
    const settle = (kind: TunnelEnd["kind"], error?: Error) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(life);
      clearTimeout(idle);
      program.destroy();
      if (status !== 0) client.destroy();
      resolve({ kind, status, ...(error !== undefined && { error }) });
    };
    const wait = (kind: TunnelEnd["kind"], limitMs: number) => {
      clearTimeout(idle);
      idle = setTimeout(() => settle(kind), limitMs);
    };
    const sayLast = () => {
      isSaid = true;
      client.end();
      wait("answered", HALF_CLOSED_MS);
    };
    const life = setTimeout(() => settle("expired"), options.lifeMs);
    let idle = setTimeout(() => settle("lost", new Error("the program did not answer the handshake in time")), options.handshakeMs);
    const accept = (head: ResponseHead, rest: Buffer) => {
      status = 101;
      wait("idle", options.idleMs);
      client.write(options.accepted(head), "latin1");
      if (rest.length > 0) client.write(rest);
      pump(program, client, () => idle.refresh());
      program.once("end", sayLast);
    };
    const refuse = (answer: Buffer) => {
      const reader = new ResponseReader();
      const read = (bytes: Buffer) => {
        idle.refresh();
        const told = reader.read(bytes, "close");
        status = reader.status;
        return told;
      };
      client.write(read(answer));
      if (reader.isOver) return sayLast();
      pump(
        program,
        client,
        () => {},
        (bytes) => {
          try {
            const told = read(bytes);
            if (reader.isOver) setImmediate(sayLast);
            return told;
          } catch (error) {
            settle("lost", error as Error);
            return null;
          }
        },
      );
      program.once("end", () => reader.endByClose() && sayLast());
    };
    shakeHands(program, { accept, refuse, fail: (error) => settle("lost", error) });
    program.on("error", (error) => {
      failure = error;
    });
    program.once("close", () => isSaid || settle("lost", failure));
    client.on("error", () => {});
    client.once("close", () => settle(isSaid || client.readableEnded ? "answered" : "left"));
    // Without an answer there is nothing that half a connection could be good for.
    client.once("end", () => {
      if (status === 0) return settle("left");
      program.end();
      wait("answered", HALF_CLOSED_MS);
    });
    program.write(options.handshake, "latin1");
    if (options.first.length > 0) program.write(options.first);
    pump(client, program, () => status === 101 && idle.refresh());
    if (client.destroyed) settle("left");
  });
}

interface Hands {
  accept(head: ResponseHead, rest: Buffer): void;
  refuse(answer: Buffer): void;
  fail(error: Error): void;
}

/** Heads are short; a program that only ever hints is not listened to. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Waits for the program's answer to the handshake, and says which it is. */
function shakeHands(program: Socket, hands: Hands): void {
  let pending: Buffer = Buffer.alloc(0);
  const onData = (bytes: Buffer) => {
    pending = Buffer.concat([pending, bytes]);
    try {
      const answer = readHandshake(pending);
      if (answer.kind === "unfinished") {
        if (pending.length > MAX_ANSWER_BYTES) throw new Error("the program's answer to the handshake does not end");
        return;
      }
      program.off("data", onData);
      if (answer.kind === "accepted") hands.accept(answer.head, answer.rest);
      else hands.refuse(answer.answer);
    } catch (error) {
      hands.fail(error as Error);
    }
  };
  program.on("data", onData);
}

/** From one side to the other, no faster than that reads. */
function pump(from: Duplex, to: Duplex, onPass: () => void, change: (bytes: Buffer) => Buffer | null = (bytes) => bytes): void {
  from.on("data", (bytes: Buffer) => {
    onPass();
    const changed = change(bytes);
    if (changed === null || to.writableEnded || to.destroyed || to.write(changed)) return;
    from.pause();
    to.once("drain", () => from.resume());
  });
}
