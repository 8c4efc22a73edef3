import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { cacheFolder } from "./bundles.ts";
import { clientOf, type Platform } from "./platform.ts";
import { endProcesses, leftOf } from "./processes.ts";

/** A platform in a separate process, to measure its memory and read its log. */
export interface ChildPlatform extends Pick<Platform, "controlUrl" | "dataUrl" | "ask" | "demand" | "create">, AsyncDisposable {
  readonly home: string;
  readonly pid: number;
  /** An administrator's token. */
  readonly token: string;
  /** Its whole log. */
  readonly log: () => string;
  /** Its peak memory in MiB; null if the system does not report it. */
  readonly peakMb: () => number | null;
  close(): Promise<void>;
}

const script = fileURLToPath(new URL("fixtures/server.ts", import.meta.url));

/** `openFiles` raises the limit of open files. */
export async function startChild(flags: Readonly<Record<string, unknown>> = {}, openFiles?: number): Promise<ChildPlatform> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "aenv-child-")));
  const settings = JSON.stringify({ home, controlPort: 0, dataPort: 0, poolMin: 0, ...flags });
  const [file, ...args] = withOpenFiles([process.execPath, script, settings, cacheFolder], openFiles);
  const child = spawn(file as string, args, { stdio: ["pipe", "pipe", "pipe"] });
  const logged: string[] = [];
  child.stderr.setEncoding("utf8").on("data", (text: string) => logged.push(text));
  const close = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.stdin.end();
      await once(child, "exit");
    }
    const left = await leftOf(home);
    endProcesses(left);
    rmSync(home, { recursive: true, force: true });
    if (child.exitCode !== 0 || left.length > 0)
      throw new Error(`the server ended with ${child.exitCode ?? child.signalCode} and left ${left.length} processes:\n${logged.join("")}`);
  };
  const [line] = await Promise.race([once(createInterface(child.stdout), "line"), once(child, "exit").then(() => [])]);
  if (line === undefined) {
    await close().catch(() => {});
    throw new Error(`the server did not start:\n${logged.join("")}`);
  }
  const { token, ...urls } = JSON.parse(line);
  const peakMb = () => {
    const [, kilobytes] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8")) ?? [];
    return kilobytes === undefined ? null : Number(kilobytes) / 1024;
  };
  return {
    home,
    token,
    log: () => logged.join(""),
    pid: child.pid as number,
    peakMb: process.platform === "linux" ? peakMb : () => null,
    ...clientOf(urls),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Node cannot raise its own limit; the shell that starts it can. */
export function withOpenFiles(command: readonly string[], openFiles: number | undefined): readonly string[] {
  return openFiles === undefined ? command : ["/bin/sh", "-c", `ulimit -n ${openFiles} && exec "$@"`, "sh", ...command];
}
