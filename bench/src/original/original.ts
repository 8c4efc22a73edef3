import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Target } from "../load/load.ts";
import { own } from "../processes/own.ts";
import { foreignCpuUs } from "../processes/usage.ts";

/** The Python of the interop tests, unless AENV_BENCH_PYTHON is set. */
export const PYTHON = process.env.AENV_BENCH_PYTHON ?? fileURLToPath(new URL("../../../interop/python/.venv/bin/python", import.meta.url));

/** The missing requirement of the original, or null. */
export function originalLacks(): string | null {
  if (existsSync(PYTHON)) return null;
  return "no interop/python/.venv; make one with `python3 -m venv interop/python/.venv && interop/python/.venv/bin/pip install -r interop/python/requirements.txt`";
}

/** The original's clients only know port 8081; all of 127/8 is loopback, so there is a free address for them. */
const CLIENTS_PORT = 8081;

/** The original's server with the echo tool, on a free port, or where the original's clients find it. */
export async function startOriginal({ isForItsClients = false } = {}): Promise<Target & AsyncDisposable> {
  const host = isForItsClients ? `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(2, 255)}` : "127.0.0.1";
  const port = isForItsClients ? CLIENTS_PORT : await freePort();
  const file = fileURLToPath(new URL("./echo.py", import.meta.url));
  // Its log is discarded, which makes logging as cheap as possible.
  const original = spawn(PYTHON, ["-m", "aenv.main", file, "--host", host, "--port", String(port)], { stdio: "ignore" });
  const stop = own(original);
  for (let tries = 0; !(await isOpen(host, port)); tries++) {
    if (original.exitCode !== null || tries > 600) {
      await stop();
      throw new Error(`the original Python stack did not start: ${PYTHON} -m aenv.main ended with ${original.exitCode}`);
    }
    await wait(50);
  }
  return { url: `http://${host}:${port}`, cpuUs: () => foreignCpuUs(original.pid as number), [Symbol.asyncDispose]: stop };
}

/** The original cannot choose a free port itself. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

function isOpen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once("connect", () => socket.end() && resolve(true));
    socket.once("error", () => resolve(false));
  });
}
