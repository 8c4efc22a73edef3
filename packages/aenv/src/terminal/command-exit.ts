/** The command ends with this exit code, and nothing more is printed: it is the code of a program that ran elsewhere. */
export class CommandExit extends Error {
  override readonly name = "CommandExit";
  readonly code: number;

  constructor(code: number) {
    super(`exit code ${code}`);
    this.code = code;
  }
}
