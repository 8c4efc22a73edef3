import type { SandboxRuntime } from "../../engine/engine.ts";

export interface RunOptions {
  /** Receives what process 1 prints. The sandbox keeps it open, so it is a file: a pipe would never end. */
  readonly logPath: string;
  readonly signal: AbortSignal;
  /** How much the sandbox may write into its root. Only for runsc, which stores changes itself; see `UpperStorage` for runc. */
  readonly diskMb?: number;
  /** Set-user-id programs change the user; gVisor's kernel does not learn it from the bundle alone. */
  readonly setsUserIds?: boolean;
  /** The root, if it is not mounted yet: see `prepareRoot`. */
  readonly root?: object | undefined;
}

export interface StartedSandbox {
  /** The process on this machine that holds the sandbox: process 1 of a runc sandbox, the kernel of a runsc sandbox. */
  readonly pid: number;
  /** The process through which a runsc sandbox reaches its files. Without it, the kernel answers, but no program can start. */
  readonly fileServerPid?: number;
}

/** A program that runs sandboxes from an OCI bundle. Every call has a time limit. */
export interface OciRuntime {
  readonly name: SandboxRuntime;
  /** The path of the program that starts sandboxes. */
  readonly program: string;
  /** The version and the options of the program: what `checkpoint` has stored can be restored by a runtime with the same ones. */
  readonly checkpointFormat?: string;
  /** The filter of system calls as the program has compiled it for an earlier sandbox, in base64: see `ConfigInput`. Null if it has none. */
  readonly compiledFilter?: string | null;
  /** Starts process 1. If it fails, nothing is left. */
  run(id: string, bundle: string, options: RunOptions): Promise<StartedSandbox>;
  isRunning(id: string): Promise<boolean>;
  /** Kills all processes, waits for their end, and deletes what the runtime stored. Idempotent; also for a start that was interrupted. */
  remove(id: string): Promise<void>;
  /** Stops all processes until `thaw`. Both are idempotent. */
  freeze(id: string): Promise<void>;
  thaw(id: string): Promise<void>;
  /** All sandboxes that have not been removed, running or not. */
  list(): Promise<string[]>;
  /** Stores processes, memory and changed files in a new folder, and lets the sandbox go on. */
  checkpoint?(id: string, folder: string, signal: AbortSignal): Promise<void>;
  /** Does what `restore` does before it needs a checkpoint: more than half of its work. The same for `run`, which `startPrepared` finishes. */
  prepare?(id: string, bundle: string, options: RunOptions): Promise<StartedSandbox>;
  /** Starts process 1 of a sandbox that was prepared. */
  startPrepared?(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Starts a sandbox from what `checkpoint` stored; any number of times. It may have been prepared. The bundle may have another host
   * name, network and limits.
   */
  restore?(id: string, bundle: string, folder: string, options: RunOptions): Promise<StartedSandbox>;
  /** Writes the files that differ from the root of the bundle, as a layer of an image. For roots whose changes are not in their overlay. */
  writeChanges?(id: string, archive: string, signal: AbortSignal): Promise<void>;
}
