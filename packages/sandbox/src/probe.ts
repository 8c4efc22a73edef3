import { existsSync, type FSWatcher, watch } from "node:fs";
import { get } from "node:http";
import { basename, dirname } from "node:path";
import type { SandboxAddress } from "./engine.ts";
import { Bell } from "./wake-signal.ts";

/** Asks a sandbox for its health once; any answer counts, for a blank runner says no until it is bound. */
export function knock(address: SandboxAddress, signal: AbortSignal): Promise<void> {
  const where = address.kind === "unix" ? { socketPath: address.path } : { host: address.host, port: address.port };
  return new Promise((resolve, reject) => {
    const request = get({ ...where, path: "/health", agent: false, headers: { host: "localhost" }, signal }, (response) => {
      response.on("error", () => undefined).destroy();
      resolve();
    });
    request.on("error", reject);
  });
}

/** Until something answers at a unix socket, which need not be there yet. */
export async function untilAnswers(path: string, signal: AbortSignal): Promise<void> {
  const bell = new Bell();
  const ring = () => bell.ring();
  signal.addEventListener("abort", ring);
  const watcher = watchFor(path, ring);
  try {
    let pauseMs = 1;
    while (!signal.aborted) {
      if (!existsSync(path)) {
        // Where folders cannot be watched, looking again now and then has to do.
        await bell.wait(watcher === null ? 5 : 100);
        continue;
      }
      try {
        return await knock({ kind: "unix", path }, signal);
      } catch {
        // The socket appears a moment before it is listened on.
        await bell.wait(pauseMs);
        pauseMs = Math.min(pauseMs * 2, 50);
      }
    }
    throw signal.reason;
  } finally {
    watcher?.close();
    signal.removeEventListener("abort", ring);
  }
}

function watchFor(path: string, onSeen: () => void): FSWatcher | null {
  try {
    const name = basename(path);
    const watcher = watch(dirname(path), { persistent: false }, (_, file) => {
      if (file === name) onSeen();
    });
    return watcher.on("error", () => undefined);
  } catch {
    return null;
  }
}
