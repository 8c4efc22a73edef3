import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { clientOf } from "../platform.ts";

const main = fileURLToPath(new URL("fixtures/server.ts", import.meta.url));
const cache = fileURLToPath(new URL("../../../../../node_modules/.cache/aenv-platform", import.meta.url));

export interface ServerProcess extends ReturnType<typeof clientOf> {
  /** What it has logged. */
  log(): string;
  /** Kills it with SIGKILL. */
  kill(): Promise<void>;
  /** Makes it kill itself after so many critical steps; see fixtures/death.ts. */
  dieAfter(moments: number): Promise<void>;
  /** Sends SIGTERM and does not wait. */
  askToStop(): void;
  /** Sends SIGTERM; rejects if the exit code is not 0. */
  stop(): Promise<void>;
}

/** A server that is starting; it can be killed before it is ready. */
export interface Starting {
  readonly ready: Promise<ServerProcess>;
  kill(): Promise<void>;
}

export interface StartOptions {
  /** Any setting of the server's configuration. */
  readonly flags?: Readonly<Record<string, unknown>>;
  /** It kills itself after so many critical steps, counted from its start; 0 for never. */
  readonly moments?: number;
}

export function startServerProcess(home: string, { flags = {}, moments = 0 }: StartOptions = {}): Starting {
  const all = { home, controlPort: 0, dataPort: 0, logLevel: "error", ...flags };
  const child = spawn(process.execPath, [main, JSON.stringify(all), join(cache, "runner"), String(moments)], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, NODE_COMPILE_CACHE: join(cache, "server") },
  });
  const said: string[] = [];
  child.stderr.setEncoding("utf8").on("data", (text: string) => said.push(text));
  const exited = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const kill = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  const askToStop = () => void child.kill("SIGTERM");
  const stop = async () => {
    askToStop();
    const [code] = await exited;
    if (code !== 0) throw new Error(`the server ended with ${code}: ${said.join("")}`);
  };
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const dieAfter = async (count: number) => {
    child.stdin.write(`${count}\n`);
    await lines.next();
  };
  const ready = lines.next().then(({ value, done }) => {
    if (done) throw new Error(`the server did not start: ${said.join("")}`);
    return { ...clientOf(JSON.parse(value)), log: () => said.join(""), kill, dieAfter, askToStop, stop };
  });
  // A caller that kills it does not wait for `ready`.
  ready.catch(() => {});
  return { ready, kill };
}
