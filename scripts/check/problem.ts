/** One problem that a check found, and its location. */
export interface Problem {
  /** Relative to the repository. */
  readonly file: string;
  readonly line?: number;
  readonly message: string;
}

/** Checks the repository below `root`; an empty list means that it passed. */
export type Check = (root: string) => Promise<readonly Problem[]>;

/** The format that editors and terminals make clickable: `file:line: message`. */
export function formatProblem({ file, line, message }: Problem): string {
  return line === undefined ? `${file}: ${message}` : `${file}:${line}: ${message}`;
}

/** The 1-based line at an offset of a text. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}
