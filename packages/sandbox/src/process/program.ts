import { basename, dirname } from "node:path";
import type { BoxSpec } from "../engine.ts";
import type { BoxFolder } from "./box-folder.ts";

/** The variable by which a box's processes are found, wherever they went. */
const MARKER = "AENV_BOX";

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
export function programOf(spec: BoxSpec, folder: BoxFolder, socket: string, options: ProgramOptions): Program {
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
      [MARKER]: folder.path,
    },
  };
}

/** The entry in the environment of all processes of a box. */
export function markerOf(folder: BoxFolder): string {
  return `${MARKER}=${folder.path}`;
}

export function defaultPath(): string {
  return [dirname(process.execPath), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"].join(":");
}

/** Node is told to collect garbage before the box is as large as it may be; what is not on its heap needs the rest. */
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
