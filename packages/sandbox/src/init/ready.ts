import type { KeyObject } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { isPlatformError } from "@aenv/contract";
import type { SandboxAddress } from "../engine.ts";
import { connectInit, type InitConnection } from "./connection.ts";

/** Connects to an init that was started just now and may not listen yet. */
export async function connectStartingInit(address: SandboxAddress, key: KeyObject, signal: AbortSignal): Promise<InitConnection> {
  // Grows slowly: most are ready after a few milliseconds, and a long pause would be most of the wait.
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 1.2, 50)) {
    try {
      return await connectInit(address, key, signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!isPlatformError(error, "sandbox.lost") || !isNotListening(error.cause)) throw error;
    }
    await setTimeout(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}

function isNotListening(cause: unknown): boolean {
  return ["ENOENT", "ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"].includes((cause as NodeJS.ErrnoException | undefined)?.code ?? "");
}
