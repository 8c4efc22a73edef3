import { access } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { messageOf, PlatformError } from "@aenv/contract";
import type { SandboxSpec } from "../engine/engine.ts";
import { tellAddress } from "../spec/listening.ts";
import { LAUNCHER_LOST, type Launched, launch } from "./launcher.ts";
import type { SandboxFolder, SandboxRecord } from "./sandbox-folder.ts";

/** The environment variable by which the processes of a sandbox are found. */
const MARKER = "AENV_SANDBOX";

export interface ProgramOptions {
  /** The PATH of the sandbox. */
  readonly path: string;
  /** Flags for programs that are Node itself. */
  readonly nodeOptions: readonly string[];
}

export interface Program {
  readonly file: string;
  readonly args: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** Where programs listen that listen on a port. */
const HOST = "127.0.0.1";

/** The command line and the variables for a spec. */
export function programOf(
  spec: SandboxSpec,
  folder: SandboxFolder,
  { socket, port, secret }: Pick<SandboxRecord, "socket" | "port" | "secret">,
  options: ProgramOptions,
): Program {
  const { command, variables } = port === undefined ? spec : tellAddress(spec, { host: HOST, port });
  const [file = "", ...args] = command;
  const where = port === undefined ? ["--socket", socket] : [];
  const { memoryMb, cpuSeconds } = spec.resources ?? {};
  const whole = [file, ...nodeFlags(file, memoryMb, options.nodeOptions), ...args, ...where];
  const limited = cpuSeconds === undefined ? whole : [...limitCpu(cpuSeconds), ...whole];
  return {
    file: limited[0] as string,
    args: limited.slice(1),
    // The marker last, so that the spec cannot replace it.
    variables: { ...ownVariables(folder, options), ...variables, ...markerVariable(folder, { secret }) },
    cwd: join(folder.work, spec.cwd ?? "."),
  };
}

/** Variables of every process of a sandbox, but for the marker. */
export function ownVariables(folder: SandboxFolder, { path }: Pick<ProgramOptions, "path">): Record<string, string> {
  return { PATH: path, HOME: folder.work, TMPDIR: folder.temporary, LANG: "C.UTF-8" };
}

export function markerVariable(folder: SandboxFolder, { secret }: Pick<SandboxRecord, "secret">): Record<string, string> {
  return { [MARKER]: `${folder.path}:${secret}` };
}

/** Resolves when the process exists, ready or not. It outlives this process: it writes its log itself and leads its own session. */
export async function startProgram(program: Program, folder: SandboxFolder, group?: string): Promise<Launched> {
  const { file, cwd } = program;
  try {
    return await launch({ ...program, log: folder.log, group });
  } catch (error) {
    const cause = error as NodeJS.ErrnoException;
    let why = messageOf(cause);
    if (cause.code === "ENOENT") {
      // Node reports a missing working directory in the same way.
      why = await access(cwd).then(
        () => "no such program",
        () => `its files have no folder '${relative(folder.work, cwd)}'`,
      );
    }
    const retryable = cause.code === "EAGAIN" || cause.code === LAUNCHER_LOST;
    throw new PlatformError("sandbox.start_failed", `cannot run '${file}': ${why}`, { cause, retryable });
  }
}

/** The marker: an entry in the environment of all processes of a sandbox. */
export function markerOf(folder: SandboxFolder, { secret }: Pick<SandboxRecord, "secret">): string {
  return `${MARKER}=${folder.path}:${secret}`;
}

export function defaultPath(): string {
  return [dirname(process.execPath), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"].join(":");
}

/** The share of the memory limit that Node may use for its heap; memory outside the heap needs the rest. */
const HEAP_SHARE = 0.75;

function nodeFlags(file: string, memoryMb: number | undefined, extra: readonly string[]): readonly string[] {
  if (basename(file) !== "node" && file !== process.execPath) return [];
  return memoryMb === undefined ? extra : [`--max-old-space-size=${Math.max(16, Math.floor(memoryMb * HEAP_SHARE))}`, ...extra];
}

/** The soft limit comes first: its SIGXCPU names the cause, while the hard limit sends SIGKILL. */
function limitCpu(seconds: number): readonly string[] {
  const whole = Math.max(1, Math.ceil(seconds));
  return ["/bin/sh", "-c", `ulimit -S -t ${whole} && ulimit -H -t ${whole + 5} && exec "$@"`, "sh"];
}
