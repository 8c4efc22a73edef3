/** Source code that the reader does not support, with file and line: `tools.py:12: …`. */
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

/** Runs `read` and adds the file to its errors. */
export function inFile<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof ReaderError ? error.in(file) : error;
  }
}
