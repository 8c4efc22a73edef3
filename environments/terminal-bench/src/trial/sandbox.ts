import type { NetworkPolicy } from "./plan/network.ts";

export interface ExecOptions {
  /** Name or id; null is the image's user. */
  readonly user?: string | number | null;
  /** Null is the image's working directory. */
  readonly cwd?: string | null;
  readonly env?: Readonly<Record<string, string>>;
  /** After it the process group is ended. */
  readonly timeoutMs?: number | undefined;
}

export interface ExecResult {
  /** Null if the command was ended by its timeout or by a signal. */
  readonly exitCode: number | null;
  /** Standard output and standard error, interleaved and capped. */
  readonly output: string;
  readonly isTimedOut: boolean;
}

/** What is at a path of a sandbox, or below it. */
export interface SandboxEntry {
  /** Relative to the given path; empty if that is the file itself. */
  readonly path: string;
  readonly type: "file" | "directory" | "link";
  readonly mode: number;
  /** Size of the content in bytes. */
  readonly size: number;
  /** In seconds, by the sandbox's clock. */
  readonly modifiedSec: number;
  /** Where a link leads. */
  readonly target: string;
  /** Content of a file. Content that is not read is skipped. */
  readonly content: AsyncIterable<Uint8Array>;
}

/** What a trial needs of a running sandbox. */
export interface TrialSandbox {
  /** Runs a command with `bash -c`. Throws if something outside of the sandbox has ended processes of it meanwhile. */
  exec(command: string, options?: ExecOptions): Promise<ExecResult>;
  /** Copies the content of a folder of the host into a directory of the sandbox, as root and without following links. */
  upload(folder: string, path: string): Promise<void>;
  /** What is below a path, or the file itself, while it arrives; nothing if the path does not exist. Special files are left out. */
  read(path: string): AsyncIterable<SandboxEntry>;
  /** Puts entries into a directory, as root and without following links. A link that leads out of it is an error. */
  write(path: string, entries: AsyncIterable<SandboxEntry>): Promise<void>;
  /** What is at a path, without the help of the sandbox's programs; null for nothing, links and special files. */
  kindOf(path: string): Promise<"file" | "directory" | null>;
  /** Whether its limit of processes has kept a program from starting one, as far as that is known. */
  hasReachedProcessLimit(): Promise<boolean>;
  /** Ends the process groups of the commands that still run. Daemons that left their group stay: many tasks need them. */
  endProcesses(): Promise<void>;
  setNetwork(policy: NetworkPolicy): Promise<void>;
  stop(): Promise<void>;
}
