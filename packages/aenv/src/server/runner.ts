import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const isCheckout = import.meta.url.endsWith(".ts");

/** The command line of a process that waits for an environment: this Node, and the kit's runner. */
export function runnerCommand(home: string): string[] {
  return [process.execPath, runnerFile(), "--compile-cache", join(home, "compile-cache")];
}

/** The runner as one file of JavaScript, for sandboxes that do not see the files of this machine. */
export async function runnerCode(): Promise<string> {
  if (!isCheckout) return readFile(runnerFile(), "utf8");
  const { build } = await import("esbuild");
  const { outputFiles } = await build({ ...runnerBuild, entryPoints: [runnerFile()], write: false });
  return outputFiles[0]?.text ?? "";
}

/** How esbuild makes one file of the runner. Minified code contains no paths of the sources, so it is the same everywhere. */
export const runnerBuild = {
  bundle: true,
  minify: true,
  keepNames: true,
  platform: "node",
  format: "esm",
  target: "node22",
  logLevel: "silent",
} as const;

/** In the published package it is in the same folder. */
function runnerFile(): string {
  return isCheckout ? createRequire(import.meta.url).resolve("@aenv/kit/runner") : fileURLToPath(new URL("./runner.js", import.meta.url));
}
