import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Load, type Target } from "../load/load.ts";
import { own } from "../processes/own.ts";
import { startServer } from "../processes/server.ts";
import { foreignCpuUs } from "../processes/usage.ts";
import { takeTurns } from "../rounds.ts";
import type { Report } from "../suite.ts";
import { cpuOf, echo, rateOf, servers } from "./calls.ts";

/** Where the interop tests keep the original, unless told otherwise. */
const PYTHON = process.env.AENV_BENCH_PYTHON ?? fileURLToPath(new URL("../../../interop/python/.venv/bin/python", import.meta.url));

const ROUNDS = 7;
const WARM_UP = { turns: 20_000, ms: 2_000 };
const ROUND = { turns: 10_000, ms: 1_000 };

/** The same tool in the original Python stack and in the kit, by the same client with the handshake that the original needs. */
export async function measureBesidePython(report: Report): Promise<void> {
  if (!existsSync(PYTHON)) {
    report.leaveOut(
      "beside the original Python stack",
      "no interop/python/.venv; make one with `python3 -m venv interop/python/.venv && interop/python/.venv/bin/pip install -r interop/python/requirements.txt`",
    );
    return;
  }
  await using python = await startOriginal();
  await using kit = await startServer(servers.kit, ["hot"]);
  await using load = new Load();

  for (const lanes of [1, 64]) {
    report.say(`beside Python at concurrency ${lanes}`);
    const job = { lanes, hasSession: true, steps: [echo] };
    const contenders = {
      python: (limits = ROUND) => load.measure(python, job, limits),
      kit: (limits = ROUND) => load.measure(kit, job, limits),
    };
    for (const warmUp of Object.values(contenders)) await warmUp(WARM_UP);
    const samples = await takeTurns(ROUNDS, contenders);
    const what = "the original Python stack";
    report.add({
      name: `echo tool in a session, concurrency ${lanes}`,
      value: rateOf(samples.kit),
      unit: "calls/s",
      beside: { what, value: rateOf(samples.python) },
      aim: { of: "ratio", is: "at least", limit: 10 },
    });
    report.add({
      name: `CPU per echo call in a session, concurrency ${lanes}`,
      value: cpuOf(samples.kit),
      unit: "us",
      beside: { what, value: cpuOf(samples.python) },
    });
  }
}

async function startOriginal(): Promise<Target & AsyncDisposable> {
  const port = await freePort();
  const file = fileURLToPath(new URL("./servers/echo.py", import.meta.url));
  // What it logs is thrown away, which is the cheapest that logging can be for it.
  const original = spawn(PYTHON, ["-m", "aenv.main", file, "--host", "127.0.0.1", "--port", String(port)], { stdio: "ignore" });
  const stop = own(original);
  for (let tries = 0; !(await isOpen(port)); tries++) {
    if (original.exitCode !== null || tries > 600) {
      await stop();
      throw new Error(`the original Python stack did not start: ${PYTHON} -m aenv.main ended with ${original.exitCode}`);
    }
    await wait(50);
  }
  return { url: `http://127.0.0.1:${port}`, cpuUs: () => foreignCpuUs(original.pid as number), [Symbol.asyncDispose]: stop };
}

/** The original cannot choose a free port by itself. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => socket.end() && resolve(true));
    socket.once("error", () => resolve(false));
  });
}
