/** The text is not Python, or uses a part of its syntax that is not supported. */
export class PythonSyntaxError extends Error {
  override readonly name = "PythonSyntaxError";
  readonly line: number;

  constructor(message: string, line = 1) {
    super(message);
    this.line = line;
  }
}
