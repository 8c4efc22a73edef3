import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Catalogue } from "../project/catalogue.ts";
import { endedWhileLoading, loadTimedOut } from "../project/load-errors.ts";
import { Failure, type Place } from "../terminal/failure.ts";

export interface LoadOptions {
  /** How long the environment's modules may take to load. */
  readonly timeoutMs: number;
  /** The environment's output while it is loaded. */
  onOutput(text: string): void;
}

type Answer = Catalogue | { readonly error: string; readonly place?: Place };

/** Timeout for output that was printed before the end. A child process of the environment can keep the pipe open for longer. */
const OUTPUT_GRACE_MS = 500;

/** The catalogue of the environment in a folder, which is loaded in a separate process. */
export async function loadCatalogue(folder: string, { timeoutMs, onOutput }: LoadOptions): Promise<Catalogue> {
  const entry = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "./describe.ts" : "./describe.js", import.meta.url));
  // The catalogue of a bundle must not depend on the data of this machine.
  const { AENV_DATA_DIR: _, ...env } = process.env;
  const sockets = mkdtempSync(join(tmpdir(), "aenv-"));
  const child = fork(entry, [folder, join(sockets, "sandbox.sock")], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", onOutput);
  try {
    const answer = await answerOf(child, timeoutMs);
    if (!("error" in answer)) return answer;
    const message = answer.place === undefined ? answer.error : answer.error.replace(/^\S+:\d+(?::\d+)?: /, "");
    throw new Failure([{ message, place: answer.place }], { code: "environment.invalid" });
  } finally {
    await end(child);
    rmSync(sockets, { recursive: true, force: true });
  }
}

async function answerOf(child: ChildProcess, timeoutMs: number): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  child.once("message", (message) => resolve(message as Answer));
  child.once("error", reject);
  child.once("exit", (code, signal) => {
    // An answer that was sent just before the end is read first.
    const fail = () => setImmediate(() => reject(endedWhileLoading(code, signal)));
    if (child.connected) child.once("disconnect", fail);
    else fail();
  });
  const timer = setTimeout(() => reject(loadTimedOut(timeoutMs)), timeoutMs);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}

/** Kills the process and closes its pipes, so that nothing waits for them. */
async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined) return;
  const closed = child.exitCode === null && child.signalCode === null ? once(child, "close") : Promise.resolve();
  if (child.connected) child.disconnect();
  child.kill("SIGKILL");
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([closed, new Promise((resolve) => (timer = setTimeout(resolve, OUTPUT_GRACE_MS)))]);
  clearTimeout(timer);
  for (const stream of [child.stdout, child.stderr]) stream?.destroy();
}
