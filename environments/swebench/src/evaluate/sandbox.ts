/** What is needed of a sandbox with the image of an instance. Commands run as root. */
export interface EvalSandbox {
  /** Runs a command without a shell, and waits for its end. */
  exec(command: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /** Writes a file, and creates its folder. */
  write(path: string, bytes: Uint8Array): Promise<void>;
}

export interface ExecOptions {
  /** The image's own folder by default. */
  readonly cwd?: string;
  /** After this time the command is ended. */
  readonly timeoutMs?: number;
}

export interface ExecResult {
  /** Null if the command was ended because of the timeout. */
  readonly exitCode: number | null;
  /** Standard output and standard error as one stream, in the order of arrival: the markers are on standard error. */
  readonly output: Uint8Array;
  /** The memory limit of the sandbox ended the command. */
  readonly isOutOfMemory?: boolean;
}
