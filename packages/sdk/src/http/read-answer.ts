import { problemsOf } from "@aenv/contract";
import type { z } from "zod";
import { ValidationError } from "../errors/errors.ts";

/** Parses what a server answered. `what` names it, as the subject of the error's sentence. */
export function readAnswer<S extends z.ZodType>(schema: S, data: unknown, what: string): z.infer<S> {
  const parsed = schema.safeParse(data);
  if (parsed.success) return parsed.data;
  throw new ValidationError(`${what} has an unexpected shape: ${problemsOf(parsed.error, "it")}`);
}
