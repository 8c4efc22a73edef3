import type { KeyObject } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { isPlatformError } from "@aenv/contract";
import type { SandboxAddress } from "../engine.ts";
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

/**
 * Connects to an init that was started just now and may not listen yet. `started`: it listens within milliseconds after this has resolved, if not before.
 */
export async function connectStartingInit(
  address: SandboxAddress,
  key: KeyObject,
  signal: AbortSignal,
  started: Promise<unknown> = Promise.resolve(),
): Promise<InitConnection> {
  const connect = (stop: AbortSignal) => connectInit(address, key, stop);
  let pauseMs = 1;
  let isStarted = false;
  const starting = started.then(
    () => {
      isStarted = true;
      pauseMs = 1;
    },
    () => undefined,
  );
  for (;;) {
    try {
      return await (address.kind === "tcp" ? connectOnNetwork(connect, signal) : connect(signal));
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!isPlatformError(error, "sandbox.lost") || !isNotListening(error.cause)) throw error;
    }
    const pause = setTimeout(pauseMs, undefined, { signal }).catch(() => undefined);
    await (isStarted ? pause : Promise.race([pause, starting]));
    // Grows slowly: most are ready after a few milliseconds, and a long pause would be most of the wait.
    pauseMs = Math.min(pauseMs * 1.2, 50);
  }
}

interface Attempt {
  readonly stop: AbortController;
  readonly connecting: Promise<InitConnection>;
}

/** Makes attempts side by side until one has an answer: a connection, or an error. */
async function connectOnNetwork(connect: (stop: AbortSignal) => Promise<InitConnection>, signal: AbortSignal): Promise<InitConnection> {
  const attempts: Attempt[] = [];
  const over = new AbortController();
  let used: InitConnection | null = null;
  try {
    for (let nextMs = NEXT_ATTEMPT_MS; used === null; nextMs = Math.min(nextMs * ATTEMPT_GROWTH, MAX_NEXT_ATTEMPT_MS)) {
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
