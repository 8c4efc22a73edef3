import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { pythonPath } from "@aenv/testing";
import { vi } from "vitest";

const here = import.meta.dirname;

/** The original's clients only support port 8081; all of 127/8 is loopback, so each test gets an address of its own. */
export const ORIGINAL_PORT = 8081;

export function freeLoopback(): string {
  return `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(2, 255)}`;
}

/** Variables of programs with the original's SDK. */
export function variables(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return { ...process.env, PYTHONDONTWRITEBYTECODE: "1", PYTHONWARNINGS: "ignore", ...more };
}

/** Runs parts of local_mode.py against the environment at an address. */
export async function useFromPython(address: string, parts: readonly string[], otherAddress = ""): Promise<Record<string, unknown>> {
  const args = [join(here, "local_mode.py"), parts.join(","), ...(otherAddress === "" ? [] : [`http://${otherAddress}`])];
  const { stdout } = await promisify(execFile)(pythonPath, args, {
    env: variables({ DUMMY_INSTANCE_IP: `http://${address}` }),
    timeout: 90_000,
  });
  const report = stdout.trim().split("\n").at(-1) ?? "";
  return JSON.parse(report);
}

export interface OriginalServer extends AsyncDisposable {
  readonly address: string;
  readonly url: string;
}

/** Serves twin.py with the original's server. */
export async function serveOriginal(): Promise<OriginalServer> {
  const address = freeLoopback();
  const args = ["-m", "aenv.main", join(here, "twin.py"), "--host", address, "--port", String(ORIGINAL_PORT)];
  const server = spawn(pythonPath, args, { stdio: ["ignore", "pipe", "pipe"], env: variables() });
  const said: string[] = [];
  for (const stream of [server.stdout, server.stderr]) stream.setEncoding("utf8").on("data", (text: string) => said.push(text));
  const url = `http://${address}:${ORIGINAL_PORT}`;
  try {
    await vi.waitUntil(() => answers(url, server, said), { timeout: 50_000, interval: 100 });
  } catch (error) {
    await end(server);
    throw error;
  }
  return { address, url, [Symbol.asyncDispose]: () => end(server) };
}

async function answers(url: string, server: ChildProcess, said: readonly string[]): Promise<boolean> {
  if (server.exitCode !== null) throw new Error(`the original's server ended:\n${said.join("")}`);
  return fetch(`${url}/functions/list`).then(
    () => true,
    () => false,
  );
}

/** SIGKILL, because it would wait for clients with open streams. */
async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  server.kill("SIGKILL");
  await once(server, "exit");
}
