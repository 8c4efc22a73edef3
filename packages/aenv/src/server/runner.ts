import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The command line of a process that waits for an environment: this Node, and the kit's runner. */
export function runnerCommand(home: string): string[] {
  // In the published package it is in the same folder.
  const entry = import.meta.url.endsWith(".ts")
    ? createRequire(import.meta.url).resolve("@aenv/kit/runner")
    : fileURLToPath(new URL("./runner.js", import.meta.url));
  return [process.execPath, entry, "--compile-cache", join(home, "compile-cache")];
}
