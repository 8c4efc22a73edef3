/** What the reader could not read, and where: `tools.py:12: …`. */
export class ReaderError extends Error {
  override readonly name = "ReaderError";

  readonly problem: string;
  readonly line: number | undefined;
  readonly file: string | undefined;

  constructor(problem: string, line?: number, file?: string) {
    super(`${file ?? "python"}${line === undefined ? "" : `:${line}`}: ${problem}`);
    this.problem = problem;
    this.line = line;
    this.file = file;
  }

  in(file: string): ReaderError {
    return this.file === undefined ? new ReaderError(this.problem, this.line, file) : this;
  }
}

/** Runs `read` and lets its complaints name the file. */
export function inFile<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof ReaderError ? error.in(file) : error;
  }
}
