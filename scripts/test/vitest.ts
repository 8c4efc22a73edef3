import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** Runs Vitest in the repository; returns its exit code. */
export function runVitest(root: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): number {
  const program = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");
  return spawnSync(process.execPath, [program, ...args], { cwd: root, stdio: "inherit", env: { ...process.env, ...env } }).status ?? 1;
}
