import type { KeyObject } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { isPlatformError } from "@aenv/contract";
import type { SandboxAddress } from "../engine/engine.ts";
import { connectInit, type InitConnection } from "./connection.ts";

/**
 * On a network, a second attempt is made beside the first after this time, later ones after longer. It is short: a cluster drops packets for
 * some milliseconds after it has reported that a pod runs, and the system would send them again only after a second.
 */
const NEXT_ATTEMPT_MS = 3;
const ATTEMPT_GROWTH = 1.3;
const MAX_NEXT_ATTEMPT_MS = 8_000;
/** The oldest of more is given up. */
const MAX_ATTEMPTS = 8;

/** An init whose announcement is missing is tried all the same. */
const ANNOUNCED_WITHIN_MS = 2_000;

export interface StartingOptions {
  /** When it listens, if that is announced. */
  readonly listening?: Promise<unknown>;
  readonly announcedWithinMs?: number;
  /** When a second attempt is made beside the first. */
  readonly nextAttemptMs?: number;
}

/** Connects to an init that was started just now and may not listen yet. */
export async function connectStartingInit(
  address: SandboxAddress,
  key: KeyObject,
  signal: AbortSignal,
  { listening, announcedWithinMs = ANNOUNCED_WITHIN_MS, nextAttemptMs = NEXT_ATTEMPT_MS }: StartingOptions = {},
): Promise<InitConnection> {
  if (listening !== undefined) await untilAnnounced(listening, announcedWithinMs, signal);
  const connect = (stop: AbortSignal) => connectInit(address, key, stop);
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 1.2, 50)) {
    try {
      return await (address.kind === "tcp" ? connectOnNetwork(connect, signal, nextAttemptMs) : connect(signal));
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!isPlatformError(error, "sandbox.lost") || !isNotListening(error.cause)) throw error;
    }
    // Grows slowly: most are ready after a few milliseconds, and a long pause would be most of the wait.
    await setTimeout(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}

async function untilAnnounced(listening: Promise<unknown>, withinMs: number, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const limit = setTimeout(withinMs, undefined, { signal: AbortSignal.any([signal, over.signal]) });
  await Promise.race([listening, limit]).catch(() => undefined);
  over.abort();
}

interface Attempt {
  readonly stop: AbortController;
  readonly connecting: Promise<InitConnection>;
}

/** Makes attempts side by side until one has an answer: a connection, or an error. */
async function connectOnNetwork(
  connect: (stop: AbortSignal) => Promise<InitConnection>,
  signal: AbortSignal,
  firstMs: number,
): Promise<InitConnection> {
  const attempts: Attempt[] = [];
  const over = new AbortController();
  let used: InitConnection | null = null;
  try {
    for (let nextMs = firstMs; used === null; nextMs = Math.min(nextMs * ATTEMPT_GROWTH, MAX_NEXT_ATTEMPT_MS)) {
      const stop = new AbortController();
      attempts.push({ stop, connecting: connect(AbortSignal.any([signal, stop.signal])) });
      if (attempts.length > MAX_ATTEMPTS) giveUp(attempts.shift());
      used = await Promise.race([...attempts.map(({ connecting }) => connecting), setTimeout(nextMs, null, { signal: over.signal })]);
    }
    return used;
  } finally {
    over.abort();
    for (const attempt of attempts) giveUp(attempt, used);
  }
}

function giveUp(attempt: Attempt | undefined, used: InitConnection | null = null): void {
  attempt?.stop.abort();
  // It may have succeeded just now.
  attempt?.connecting.then((one) => (one === used ? undefined : one.close())).catch(() => undefined);
}

function isNotListening(cause: unknown): boolean {
  return ["ENOENT", "ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"].includes((cause as NodeJS.ErrnoException | undefined)?.code ?? "");
}
