import { type SnapshotRecord, snapshotRecord } from "@aenv/contract";
import { ValidationError } from "../errors/errors.ts";

export function readSnapshot(data: unknown): SnapshotRecord {
  const parsed = snapshotRecord.safeParse(data);
  if (parsed.success) return parsed.data;
  throw new ValidationError(`the server described a snapshot in an unexpected shape: ${parsed.error.message}`);
}
