import * as z from "zod";
import { environment } from "./environment.ts";
import type { Json } from "./json.ts";
import { environmentVariables, fieldLimits, knownFields, labels, startArguments, text } from "./request-fields.ts";
import { initCommand, mountPoints } from "./sandbox-options.ts";
import { task } from "./task.ts";

export const instanceStatuses = ["Pending", "Creating", "Running", "Failed", "Terminated"] as const;
export type InstanceStatus = (typeof instanceStatuses)[number];

/**
 * A running environment as the wire has it. `status` stays a plain string: the original's services
 * also answer raw pod phases such as `Succeeded` and `Unknown`.
 */
export const instance = z.looseObject({
  id: z.string().min(1),
  env: environment.nullish(),
  status: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
  ip: z.string().nullish(),
  ttl: z.string().nullish(),
  owner: z.string().nullish(),
  labels: z.record(z.string(), z.string()).nullish(),
  /** What was asked for and is not done. */
  warnings: z.array(z.string()).nullish(),
});
export type InstanceRecord = z.infer<typeof instance>;

/** Good as a DNS label, so that it may also name a pod. */
const instanceId = z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, "must be 1 to 63 lower-case letters, digits and '-'");

/** What `POST /env-instance` takes: the original's fields, then ours. */
export const createInstanceRequest = knownFields({
  envName: text(fieldLimits.referenceLength).optional(),
  datasource: text(fieldLimits.referenceLength).optional(),
  environment_variables: environmentVariables.optional(),
  arguments: startArguments.optional(),
  ttl: text(fieldLimits.shortLength).optional(),
  /** The ttl is only what a client falls back to; what the environment's config says goes before it. */
  ttlIsFallback: z.boolean().optional(),
  owner: text(fieldLimits.nameLength).optional(),
  labels: labels.optional(),
  id: instanceId.optional(),
  task: text(fieldLimits.nameLength).optional(),
  seed: z.number().int().optional(),
  snapshot: z.unknown().optional(),
  mount_points: mountPoints.nullish(),
  init_command: initCommand.nullish(),
});
export type CreateInstanceRequest = z.infer<typeof createInstanceRequest>;

/** What `POST …/task/reset` takes: what it leaves out stays as it was. */
export const resetRequest = knownFields({
  task: text(fieldLimits.nameLength).nullish(),
  seed: z.number().int().nullish(),
});
export type ResetRequest = z.infer<typeof resetRequest>;

/** What `POST …/task/reset` answers: the episode that has begun, and what its agent is to see first. */
export const resetResult = z.object({
  task: task.nullable(),
  seed: z.number().int(),
  /** Null if the environment shows nothing; environments of older versions do not send it. */
  observation: (z.unknown() as z.ZodType<Json>).default(null),
});
export type ResetResult = z.infer<typeof resetResult>;

/** How many copies to make; a platform that has chosen their ids names them instead. */
export const forkRequest = knownFields({
  count: z.number().int().min(1).max(1_000).optional(),
  ids: z.array(instanceId).min(1).max(1_000).optional(),
}).refine(({ count, ids }) => (count === undefined) !== (ids === undefined), { message: "give either 'count' or 'ids'" });

/** What `POST /env-instance/:id/renew` takes. */
export const renewRequest = knownFields({ ttl: text(fieldLimits.shortLength) });
