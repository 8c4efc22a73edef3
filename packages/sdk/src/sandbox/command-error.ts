import { type ErrorCode, errorTable } from "@aenv/contract";
import { EnvironmentError } from "../errors/errors.ts";

/** The error that the server reports in a stream. */
export function commandError({ code, message }: Readonly<Record<string, unknown>>, id: string): EnvironmentError {
  const known = typeof code === "string" && Object.hasOwn(errorTable, code) ? (code as ErrorCode) : "internal";
  return new EnvironmentError(`could not run a command in instance '${id}': ${message}`, { code: known });
}
