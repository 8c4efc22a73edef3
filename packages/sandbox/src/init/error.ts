/**
 * A request that the init refused or could not carry out: `code` is a word of the init such as `not_found` or `no_program`.
 * It concerns the sandbox's contents. A lost connection is a `PlatformError` with the code `sandbox.lost`.
 */
export class InitError extends Error {
  override readonly name = "InitError";
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** True for an error of the init, and, if codes are given, only for those codes. */
export function isInitError(error: unknown, ...codes: string[]): error is InitError {
  return error instanceof InitError && (codes.length === 0 || codes.includes(error.code));
}
