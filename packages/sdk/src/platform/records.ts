import {
  type InstanceRecord,
  instance,
  type ResetResult,
  resetResult,
  type ServiceRecord,
  type SnapshotRecord,
  service,
  snapshotRecord,
} from "@aenv/contract";
import { readAnswer } from "../http/read-answer.ts";

export function readInstance(data: unknown): InstanceRecord {
  return readAnswer(instance, data, "the server's record of an instance");
}

export function readService(data: unknown): ServiceRecord {
  return readAnswer(service, data, "the server's record of a service");
}

export function readSnapshot(data: unknown): SnapshotRecord {
  return readAnswer(snapshotRecord, data, "the server's record of a snapshot");
}

/** Parses the response to a reset, of an instance or of the platform. */
export function readReset(data: unknown): ResetResult {
  return readAnswer(resetResult, data, "the response to the reset");
}
