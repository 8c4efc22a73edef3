/** A running MCP server that speaks over its input and output. */
export interface ServerProgram {
  readonly stdout: AsyncIterable<Uint8Array>;
  /** How it ended, in words: `exit code 1`. */
  readonly exited: Promise<string>;
  write(text: string): Promise<void>;
  /** The end of what it wrote to standard error. */
  stderrTail(): string;
  /** Ends it with all of its processes. Never fails. */
  close(): Promise<void>;
}

/** Where the servers of one episode run: a folder of their own, or a sandbox. It outlives a server that is started again. */
export interface ServerPlace {
  /** The working folder, as the server sees it. */
  readonly workspace: string;
  /** The files of the working folder, as `workspace` shows them to the environment's code. */
  readonly files: WorkspaceFiles;
  /** Whether a fork can continue with copies of the files. */
  readonly canFork: boolean;
  start(): Promise<ServerProgram>;
  /** Never fails. */
  close(): Promise<void>;
}

/** The working folder of a server. Paths are relative to it. */
export interface WorkspaceFiles {
  read(path: string): Promise<Uint8Array>;
  readText(path: string): Promise<string>;
  write(path: string, content: string | Uint8Array): Promise<void>;
}

export interface ProgramOptions {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Folders of the project that lie beside the working folder: `vendor`. */
  readonly files: readonly string[];
  /** A folder of the project with what the working folder holds at first. */
  readonly workspace: string | undefined;
  readonly image: string | undefined;
}

const TAIL_CHARACTERS = 2_000;

/** Keeps the end of a stream of text. */
export class Tail {
  #text = "";
  readonly #decoder = new TextDecoder();

  push(bytes: Uint8Array): void {
    this.#text = (this.#text + this.#decoder.decode(bytes, { stream: true })).slice(-TAIL_CHARACTERS);
  }

  toString(): string {
    return this.#text;
  }
}
