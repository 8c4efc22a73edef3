import type { KeyObject } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { isPlatformError } from "@aenv/contract";
import type { SandboxAddress } from "../engine.ts";
import { connectInit, type InitConnection } from "./connection.ts";

/**
 * The first attempt on a network is given up after this time, later ones after longer. It is short: a cluster drops packets for some
 * milliseconds after it has reported that a pod runs, and then a new attempt is the fastest.
 */
const FIRST_ATTEMPT_MS = 20;
const ATTEMPT_GROWTH = 1.5;
const MAX_ATTEMPT_MS = 8_000;

/** Connects to an init that was started just now and may not listen yet. */
export async function connectStartingInit(address: SandboxAddress, key: KeyObject, signal: AbortSignal): Promise<InitConnection> {
  // Grows slowly: most are ready after a few milliseconds, and a long pause would be most of the wait.
  let attemptMs = FIRST_ATTEMPT_MS;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 1.2, 50)) {
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
    await setTimeout(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}

function isNotListening(cause: unknown): boolean {
  return ["ENOENT", "ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"].includes((cause as NodeJS.ErrnoException | undefined)?.code ?? "");
}
