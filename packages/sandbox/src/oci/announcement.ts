import { closeSync, type FSWatcher, openSync, readFileSync, watch } from "node:fs";

/** The variable with which an init announces in its log that clients can connect. */
export const ANNOUNCES = "AENV_INIT_ANNOUNCES";
const LISTENING = /^listening$/m;

export interface Announcement extends Disposable {
  /** Resolves when the init listens. Null if files cannot be watched here. Never rejects. */
  readonly listening: Promise<void> | null;
}

/**
 * Waits for the announcement of an init that is started after this call. Attempts to connect would take processor time from the start, which needs
 * all of it.
 */
export function expectAnnouncement(logPath: string): Announcement {
  closeSync(openSync(logPath, "a", 0o600));
  let watcher: FSWatcher;
  try {
    watcher = watch(logPath, { persistent: false });
  } catch {
    // The number of watches of a machine is limited.
    return { listening: null, [Symbol.dispose]: () => undefined };
  }
  const listening = new Promise<void>((resolve) => {
    const look = () => {
      if (LISTENING.test(readFileSync(logPath, "utf8"))) resolve();
    };
    watcher.on("change", look).on("error", () => resolve());
  });
  return { listening, [Symbol.dispose]: () => watcher.close() };
}
