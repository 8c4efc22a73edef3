import type { KeyObject } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { isPlatformError } from "@aenv/contract";
import type { SandboxAddress } from "../engine.ts";
import { connectInit, type InitConnection } from "./connection.ts";

/**
 * The first attempt on a network is given up after this time, later ones after longer. It is short: a cluster drops packets for some
 * milliseconds after it has reported that a pod runs, and then a new attempt is the fastest.
 */
const FIRST_ATTEMPT_MS = 6;
const ATTEMPT_GROWTH = 1.5;
const MAX_ATTEMPT_MS = 8_000;

/**
 * Connects to an init that was started just now and may not listen yet. `started`: it listens within milliseconds after this has resolved, if not before.
 */
export async function connectStartingInit(
  address: SandboxAddress,
  key: KeyObject,
  signal: AbortSignal,
  started: Promise<unknown> = Promise.resolve(),
): Promise<InitConnection> {
  let attemptMs = FIRST_ATTEMPT_MS;
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
    // A network that does not know the sandbox yet may drop packets, and the system would send them again only after a second.
    const attempt = address.kind === "tcp" ? AbortSignal.timeout(attemptMs) : null;
    try {
      return await connectInit(address, key, attempt === null ? signal : AbortSignal.any([signal, attempt]));
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (attempt?.aborted) {
        attemptMs = Math.min(Math.ceil(attemptMs * ATTEMPT_GROWTH), MAX_ATTEMPT_MS);
        continue;
      }
      if (!isPlatformError(error, "sandbox.lost") || !isNotListening(error.cause)) throw error;
    }
    const pause = setTimeout(pauseMs, undefined, { signal }).catch(() => undefined);
    await (isStarted ? pause : Promise.race([pause, starting]));
    // Grows slowly: most are ready after a few milliseconds, and a long pause would be most of the wait.
    pauseMs = Math.min(pauseMs * 1.2, 50);
  }
}

function isNotListening(cause: unknown): boolean {
  return ["ENOENT", "ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"].includes((cause as NodeJS.ErrnoException | undefined)?.code ?? "");
}
