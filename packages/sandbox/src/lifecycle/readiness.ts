import { existsSync, type FSWatcher, watch } from "node:fs";
import { get } from "node:http";
import { basename, dirname } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { Listening, SandboxAddress } from "../engine/engine.ts";
import { WakeSignal } from "../host/wake-signal.ts";
import { healthPathOf, isReadyStatus } from "../spec/listening.ts";

/** Requests `GET /health`, or another path, once, and returns the status of the answer. */
export function probe(address: SandboxAddress, signal: AbortSignal, path = "/health"): Promise<number> {
  const where = address.kind === "unix" ? { socketPath: address.path } : { host: address.host, port: address.port };
  return new Promise((resolve, reject) => {
    const request = get({ ...where, path, agent: false, headers: { host: "localhost" }, signal }, (response) => {
      response.on("error", () => undefined).destroy();
      resolve(response.statusCode ?? 0);
    });
    request.on("error", reject);
  });
}

/**
 * Waits until a program is ready. `onAnswer` gets the status of each answer; `find` returns where the program listens, or null if it does
 * not yet.
 */
export async function waitUntilReady(
  find: () => SandboxAddress | null | Promise<SandboxAddress | null>,
  listening: Listening,
  signal: AbortSignal,
  onAnswer: (status: number) => void = () => undefined,
): Promise<SandboxAddress> {
  for (let pauseMs = 1; !signal.aborted; pauseMs = Math.min(pauseMs * 1.5, 50)) {
    try {
      const address = await find();
      if (address !== null) {
        const status = await probe(address, signal, healthPathOf(listening));
        onAnswer(status);
        // A blank runner answers 503 until it is bound.
        if (listening.kind !== "port" || isReadyStatus(listening.healthPath, status)) return address;
      }
    } catch {
      // It does not listen yet.
    }
    await setTimeout(pauseMs, undefined, { signal }).catch(() => undefined);
  }
  throw signal.reason;
}

/** Waits until a server answers at a unix socket. The socket may not exist yet. */
export async function waitUntilAnswering(path: string, signal: AbortSignal): Promise<void> {
  const wake = new WakeSignal();
  const notify = () => wake.notify();
  signal.addEventListener("abort", notify);
  const watcher = watchFor(path, notify);
  try {
    let pauseMs = 1;
    while (!signal.aborted) {
      if (!existsSync(path)) {
        // Where folders cannot be watched, the path is polled.
        await wake.wait(watcher === null ? 5 : 100);
        continue;
      }
      try {
        await probe({ kind: "unix", path }, signal);
        return;
      } catch {
        // The socket file exists shortly before the server listens on it.
        await wake.wait(pauseMs);
        pauseMs = Math.min(pauseMs * 2, 50);
      }
    }
    throw signal.reason;
  } finally {
    watcher?.close();
    signal.removeEventListener("abort", notify);
  }
}

function watchFor(path: string, onChange: () => void): FSWatcher | null {
  try {
    const name = basename(path);
    const watcher = watch(dirname(path), { persistent: false }, (_, file) => {
      if (file === name) onChange();
    });
    return watcher.on("error", () => undefined);
  } catch {
    return null;
  }
}
