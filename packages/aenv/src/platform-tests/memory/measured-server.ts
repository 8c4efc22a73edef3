import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { cacheFolder } from "../bundles.ts";
import { clientOf } from "../platform.ts";
import { endProcesses, leftOf } from "../processes.ts";

/** The memory of a server after a garbage collection. */
export interface Sample {
  /** Objects, and what they hold outside of V8's heap, such as buffers: a leak of the server's own shows here first. */
  readonly liveBytes: number;
  /** What the system gave to the process and no file backs: it also has what native code holds, and memory that is free but not returned. */
  readonly residentBytes: number;
}

export interface MeasuredServer extends ReturnType<typeof clientOf>, AsyncDisposable {
  /** An administrator's token. */
  readonly token: string;
  sample(): Promise<Sample>;
}

const script = fileURLToPath(new URL("server.ts", import.meta.url));
/** With a small young generation, V8 reserves what it needs at once, and the resident memory says less about how busy the machine is. */
const nodeOptions = ["--expose-gc", "--max-semi-space-size=4"];

/** A server in a process of its own, with SQLite in a temporary folder. */
export async function startMeasuredServer(flags: Readonly<Record<string, unknown>>): Promise<MeasuredServer> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "aenv-memory-")));
  const settings = JSON.stringify({ home, controlPort: 0, dataPort: 0, logLevel: "error", ...flags });
  const child = spawn(process.execPath, [...nodeOptions, script, settings, cacheFolder], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const nextLine = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error("the server has ended");
    return JSON.parse(value);
  };
  const close = async () => {
    child.stdin.end();
    await exited;
    const left = await leftOf(home);
    endProcesses(left);
    rmSync(home, { recursive: true, force: true });
    if (child.exitCode !== 0 || left.length > 0)
      throw new Error(`the server ended with ${child.exitCode ?? child.signalCode} and left ${left.length} processes`);
  };
  const { token, ...urls } = await nextLine().catch(async (error: unknown) => {
    await close().catch(() => {});
    throw error;
  });
  const sample = async (): Promise<Sample> => {
    child.stdin.write("\n");
    const { heapUsed, external, rss } = await nextLine();
    return { liveBytes: heapUsed + external, residentBytes: anonymousBytes(child.pid as number) ?? rss };
  };
  return { ...clientOf(urls), token, sample, [Symbol.asyncDispose]: close };
}

/** Null if the system does not report it. */
function anonymousBytes(pid: number): number | null {
  if (process.platform !== "linux") return null;
  const [, kilobytes] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return kilobytes === undefined ? null : Number(kilobytes) * 1_024;
}
