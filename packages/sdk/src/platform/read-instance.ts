import { type InstanceRecord, instance } from "@aenv/contract";
import { ValidationError } from "../errors/errors.ts";

export function readInstance(data: unknown): InstanceRecord {
  const parsed = instance.safeParse(data);
  if (parsed.success) return parsed.data;
  throw new ValidationError(`the server described an instance in an unexpected shape: ${parsed.error.message}`);
}
