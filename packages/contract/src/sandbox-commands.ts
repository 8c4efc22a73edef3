// Commands and files in sandboxes, as the SDK and the kit show them.

/** A text is run by `sh -c`; a list is a program and its arguments. */
export type CommandLine = string | readonly string[];

/** How a command ended. */
export interface CommandEnding {
  /** Null if a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** It was ended because its time was over. */
  readonly timedOut: boolean;
  readonly outOfMemory: boolean;
  /**
   * Why processes of the sandbox were ended by something outside of it while the command ran, such as a machine without memory; null if none
   * were. Then the result says nothing about the programs in the sandbox.
   */
  readonly interruption: string | null;
  readonly durationMs: number;
  /** Output that is missing, because it was more than the limit. */
  readonly droppedBytes: number;
}

export interface CommandResult extends CommandEnding {
  readonly stdout: string;
  readonly stderr: string;
}

export interface SandboxFile {
  /** As it was asked for; in a list relative to the listed folder. */
  readonly path: string;
  readonly type: "file" | "directory" | "link" | "other";
  readonly size: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly modifiedAt: string;
  /** Where a link leads. */
  readonly target?: string;
}

/** A file of an exact list, whose mode has all its bits. */
export interface ExactFile extends SandboxFile {
  /** What `modifiedAt` leaves out. */
  readonly modifiedNs: number;
  /** When the file, or what is known about it, was last changed. No program can set it. */
  readonly changedAt: string;
  /** The same number for all names of a file. */
  readonly inode?: string;
  /** The same for equal attributes and access control lists; absent without any. */
  readonly attributes?: string;
}

export type FileContent = string | Uint8Array | AsyncIterable<Uint8Array>;
