import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { temporaryTree } from "./tree.ts";

/** A real redis-server for one test: on loopback, in a temporary folder, ended with the scope or with this process. */
export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Ends the process and keeps its files; `SIGKILL` simulates a crash. */
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** Starts it again: same port, same files. */
  start(): Promise<void>;
  /** `SIGSTOP` simulates a machine that hangs, `SIGCONT` continues it. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
}

/** Lines of redis.conf: `{ appendonly: "yes" }`. With `{ "sentinel monitor": "…" }` the server is a sentinel. */
export type RedisSettings = Readonly<Record<string, string>>;

export async function startRedis(settings: RedisSettings = {}): Promise<RedisServer> {
  const tree = temporaryTree();
  const file = join(tree.path, "redis.conf");
  const isSentinel = Object.keys(settings).some((name) => name.startsWith("sentinel "));
  let running: Running | null = null;
  const start = async () => {
    running ??= await run([file, ...(isSentinel ? ["--sentinel"] : [])], tree.path);
  };
  const stop = async (signal: "SIGTERM" | "SIGKILL" = "SIGTERM") => {
    await running?.end(signal);
    running = null;
  };
  let port = 0;
  try {
    for (let attempt = 0; running === null; attempt++) {
      // Below the ephemeral ports, so that the port is not assigned to another process while the server is stopped.
      port = randomInt(15_000, 32_000);
      // Written once: a sentinel stores its state in this file, and reads it after a restart.
      tree.write({
        "redis.conf": conf({ bind: "127.0.0.1", port: String(port), dir: tree.path, ...(!isSentinel && { save: '""' }), ...settings }),
      });
      await start().catch((error: unknown) => {
        if (attempt === 20 || !String(error).includes("Address already in use")) throw error;
      });
    }
  } catch (error) {
    tree[Symbol.dispose]();
    throw error;
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    start,
    stop,
    signal: (name) => running?.process.kill(name),
    [Symbol.asyncDispose]: async () => {
      await stop("SIGKILL");
      tree[Symbol.dispose]();
    },
  };
}

interface Running {
  readonly process: ChildProcess;
  end(signal: NodeJS.Signals): Promise<void>;
}

function conf(settings: RedisSettings): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} ${value}\n`)
    .join("");
}

/** Resolves when the server accepts connections; rejects with its output if it exits before. */
async function run(args: readonly string[], folder: string): Promise<Running> {
  const server = spawn("redis-server", args, { stdio: ["ignore", "pipe", "pipe"] });
  const guard = watchOver(server, folder);
  const gone = once(server, "exit");
  const end = async (signal: NodeJS.Signals) => {
    server.kill(signal);
    await gone.finally(() => guard.kill("SIGKILL"));
  };
  const printed: string[] = [];
  server.stderr.setEncoding("utf8").on("data", (text: string) => printed.push(text));
  for await (const line of createInterface({ input: server.stdout })) {
    printed.push(line);
    if (/Ready to accept connections|Sentinel ID is/.test(line)) {
      server.stdout.resume();
      return { process: server, end };
    }
  }
  await end("SIGKILL");
  throw new Error(`redis-server did not start:\n${printed.join("\n")}`);
}

/** Ends the server and deletes its folder if this process is killed: then the pipe between them closes. */
function watchOver(server: ChildProcess, folder: string): ChildProcess {
  const script = 'read -r _; kill -9 "$1"; rm -rf "$2"';
  const guard = spawn("sh", ["-c", script, "guard", String(server.pid), folder], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  guard.unref();
  return guard;
}
