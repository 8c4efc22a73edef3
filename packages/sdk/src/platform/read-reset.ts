import { problemsOf, type ResetResult, resetResult } from "@aenv/contract";
import { ValidationError } from "../errors/errors.ts";

/** Parses the response to a reset, of an instance or of the platform. */
export function readReset(data: unknown): ResetResult {
  const parsed = resetResult.safeParse(data);
  if (parsed.success) return parsed.data;
  throw new ValidationError(`the response to the reset has an unexpected shape: ${problemsOf(parsed.error, "it")}`);
}
