import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const isCheckout = import.meta.url.endsWith(".ts");

/** The command line of a process that serves the data port for a server. */
export function workerCommand(home: string): string[] {
  return [process.execPath, workerFile(), "--compile-cache", join(home, "compile-cache")];
}

/** In the published package it is in the same folder. */
function workerFile(): string {
  return isCheckout
    ? createRequire(import.meta.url).resolve("@aenv/server/worker")
    : fileURLToPath(new URL("./worker.js", import.meta.url));
}
