import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { isObject, tryJson } from "@aenv/contract";
import type { Terminal } from "../terminal/terminal.ts";

/** Set for the tests of a project, which may run `aenv test` themselves. */
export const INSIDE = "AENV_TEST_RUNS";

/** Whether the project has tests of its own that do not run already, as they do if `npm test` has started this command. */
export function hasOwnTests(root: string, { env }: Terminal): boolean {
  if (!hasTestScript(root)) return false;
  return !(env.npm_lifecycle_event === "test" && isSameFile(env.npm_package_json ?? "", join(root, "package.json")));
}

/** Runs the project's `npm test`, and returns whether it succeeded. */
export async function runOwnTests(root: string, terminal: Terminal, write: (text: string) => void, stop: AbortSignal): Promise<boolean> {
  const env = { ...terminal.env, [INSIDE]: "1" };
  // In a group of its own, because npm does not end what it has started.
  const child = spawn("npm", ["test"], { cwd: root, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const end = () => void (child.pid !== undefined && process.kill(-child.pid));
  stop.addEventListener("abort", end);
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", write);
  const [code] = await once(child, "close").catch((error: Error) => {
    write(`npm cannot be started: ${error.message}\n`);
    return [1];
  });
  stop.removeEventListener("abort", end);
  stop.throwIfAborted();
  return code === 0;
}

function hasTestScript(root: string): boolean {
  try {
    const { scripts } = tryJson(readFileSync(join(root, "package.json"), "utf8")) as { scripts?: unknown };
    return isObject(scripts) && typeof scripts.test === "string";
  } catch {
    return false;
  }
}

function isSameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return false;
  }
}
