import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { basename, dirname } from "node:path";
import { messageOf, PlatformError } from "@aenv/contract";
import type { SandboxSpec } from "../engine.ts";
import type { SandboxFolder, SandboxRecord } from "./sandbox-folder.ts";

/** The variable by which a sandbox's processes are found, wherever they went. */
const MARKER = "AENV_SANDBOX";

export interface ProgramOptions {
  /** Where programs are looked for. */
  readonly path: string;
  /** Flags for programs that are Node itself. */
  readonly nodeOptions: readonly string[];
}

export interface Program {
  readonly file: string;
  readonly args: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

/** What is really run for a spec. */
export function programOf(
  spec: SandboxSpec,
  folder: SandboxFolder,
  { socket, secret }: Pick<SandboxRecord, "socket" | "secret">,
  options: ProgramOptions,
): Program {
  const [file = "", ...args] = spec.command;
  const whole = [file, ...nodeFlags(file, spec.memoryMb, options.nodeOptions), ...args, "--socket", socket];
  const limited = spec.cpuSeconds === undefined ? whole : [...limitCpu(spec.cpuSeconds), ...whole];
  return {
    file: limited[0] as string,
    args: limited.slice(1),
    variables: {
      PATH: options.path,
      HOME: folder.work,
      TMPDIR: folder.temporary,
      LANG: "C.UTF-8",
      ...spec.variables,
      // Last, so that nothing can take its place.
      [MARKER]: `${folder.path}:${secret}`,
    },
  };
}

/** Resolves when the program runs, ready or not. Nothing ties it to us: it writes its log itself, and leads its own session. */
export function launch({ file, args, variables }: Program, folder: SandboxFolder): Promise<ChildProcess> {
  const log = openSync(folder.log, "a", 0o600);
  return new Promise<ChildProcess>((resolve, reject) => {
    const child = spawn(file, args, { cwd: folder.work, env: { ...variables }, detached: true, stdio: ["ignore", log, log] });
    child.once("error", reject);
    child.once("spawn", () => resolve(child));
    child.unref();
  })
    .catch((cause: NodeJS.ErrnoException) => {
      const why = cause.code === "ENOENT" ? "there is no such program" : messageOf(cause);
      throw new PlatformError("sandbox.start_failed", `cannot run '${file}': ${why}`, { cause, retryable: cause.code === "EAGAIN" });
    })
    .finally(() => closeSync(log));
}

/** The entry in the environment of all processes of a sandbox. */
export function markerOf(folder: SandboxFolder, { secret }: Pick<SandboxRecord, "secret">): string {
  return `${MARKER}=${folder.path}:${secret}`;
}

export function defaultPath(): string {
  return [dirname(process.execPath), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"].join(":");
}

/** Node is told to collect garbage before the sandbox is as large as it may be; what is not on its heap needs the rest. */
const HEAP_SHARE = 0.75;

function nodeFlags(file: string, memoryMb: number | undefined, extra: readonly string[]): readonly string[] {
  if (basename(file) !== "node" && file !== process.execPath) return [];
  return memoryMb === undefined ? extra : [`--max-old-space-size=${Math.max(16, Math.floor(memoryMb * HEAP_SHARE))}`, ...extra];
}

/** The soft limit first: its signal says what happened, while the hard limit's could be anyone's. */
function limitCpu(seconds: number): readonly string[] {
  const whole = Math.max(1, Math.ceil(seconds));
  return ["/bin/sh", "-c", `ulimit -S -t ${whole} && ulimit -H -t ${whole + 5} && exec "$@"`, "sh"];
}
