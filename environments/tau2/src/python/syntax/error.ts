/** The text is not Python, or uses a part of its syntax that is not supported. */
export class PythonSyntaxError extends Error {
  override readonly name = "PythonSyntaxError";
  readonly line: number;

  constructor(message: string, line = 1) {
    super(message);
    this.line = line;
  }
}

/** The parser expects another token at this position. */
export class UnexpectedToken extends PythonSyntaxError {
  readonly position: number;
  /** Whether the token follows a complete operand. */
  readonly isAfterOperand: boolean;

  constructor(message: string, line: number, position: number, isAfterOperand: boolean) {
    super(message, line);
    this.position = position;
    this.isAfterOperand = isAfterOperand;
  }
}
