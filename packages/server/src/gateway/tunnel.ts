import type { Duplex } from "node:stream";
import type { ResponseHead } from "./fast-path/head.ts";
import { ResponseReader } from "./fast-path/response.ts";
import { readHandshake } from "./handshake.ts";

export interface TunnelLimits {
  /** How long the program may take to answer the handshake. */
  readonly handshakeMs: number;
  /** Idle timeout. */
  readonly idleMs: number;
}

export interface TunnelOptions extends TunnelLimits {
  /** The handshake for the program, and the bytes that the client sent after it. */
  readonly handshake: string;
  readonly first: Buffer;
  /** The response to the client when the program accepts. */
  readonly accepted: (head: ResponseHead) => string;
  /** The head of the response to the client when the program does not accept, before it is made fit for the client's connection. */
  readonly refused: (head: ResponseHead) => string;
  /** The tunnel is closed after this time, even if it is in use. */
  readonly lifeMs: number;
}

export interface TunnelEnd {
  readonly kind: "answered" | "left" | "lost" | "expired" | "idle";
  /** 0 if the client has got no response yet, and is still connected. */
  readonly status: number;
  readonly error?: Error;
}

/** How long one side may keep sending after the other has ended. */
const HALF_CLOSED_MS = 30_000;

/**
 * Forwards a handshake to a program and, once the program has accepted, bytes in both directions, with backpressure and without
 * parsing them. When one side closes, so does the other. A response that does not accept is passed on and ends the call.
 */
export function tunnel(client: Duplex, program: Duplex, options: TunnelOptions): Promise<TunnelEnd> {
  return new Promise((resolve) => {
    let status = 0;
    let isOver = false;
    /** The program has sent everything; the client has yet to read it. */
    let hasSentAll = false;
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
    const endClient = () => {
      hasSentAll = true;
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
      program.once("end", endClient);
    };
    const refuse = (head: ResponseHead, rest: Buffer) => {
      const reader = new ResponseReader();
      const read = (bytes: Buffer) => {
        idle.refresh();
        const forClient = reader.read(bytes, "close");
        status = reader.status;
        return forClient;
      };
      client.write(read(Buffer.concat([Buffer.from(options.refused(head), "latin1"), rest])));
      if (reader.isOver) return endClient();
      pump(
        program,
        client,
        () => {},
        (bytes) => {
          try {
            const forClient = read(bytes);
            if (reader.isOver) setImmediate(endClient);
            return forClient;
          } catch (error) {
            settle("lost", error as Error);
            return null;
          }
        },
      );
      program.once("end", () => reader.endByClose() && endClient());
    };
    awaitHandshake(program, { accept, refuse, fail: (error) => settle("lost", error) });
    program.on("error", (error) => {
      failure = error;
    });
    program.once("close", () => hasSentAll || settle("lost", failure));
    client.on("error", () => {});
    client.once("close", () => settle(hasSentAll || client.readableEnded ? "answered" : "left"));
    // Before the handshake is answered, a half-closed connection is of no use.
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

interface HandshakeHandlers {
  accept(head: ResponseHead, rest: Buffer): void;
  refuse(head: ResponseHead, rest: Buffer): void;
  fail(error: Error): void;
}

/** Limit for the response to the handshake, including informational responses before it. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Waits for the program's response to the handshake. */
function awaitHandshake(program: Duplex, handlers: HandshakeHandlers): void {
  let pending: Buffer = Buffer.alloc(0);
  const onData = (bytes: Buffer) => {
    pending = Buffer.concat([pending, bytes]);
    try {
      const answer = readHandshake(pending);
      if (answer.kind === "unfinished") {
        if (pending.length > MAX_ANSWER_BYTES) throw new Error("the program's response to the handshake is too long");
        return;
      }
      program.off("data", onData);
      if (answer.kind === "accepted") handlers.accept(answer.head, answer.rest);
      else handlers.refuse(answer.head, answer.rest);
    } catch (error) {
      handlers.fail(error as Error);
    }
  };
  program.on("data", onData);
}

/** Copies bytes from one side to the other, with backpressure. */
function pump(from: Duplex, to: Duplex, onPass: () => void, change: (bytes: Buffer) => Buffer | null = (bytes) => bytes): void {
  from.on("data", (bytes: Buffer) => {
    onPass();
    const changed = change(bytes);
    if (changed === null || to.writableEnded || to.destroyed || to.write(changed)) return;
    from.pause();
    to.once("drain", () => from.resume());
  });
}
