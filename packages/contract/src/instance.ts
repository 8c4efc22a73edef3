import * as z from "zod";
import { childGrant } from "./children.ts";
import { egressPolicy } from "./egress.ts";
import { environment } from "./environment.ts";
import { roleName } from "./episode-roles.ts";
import type { Json } from "./json.ts";
import { modelName } from "./model-calls.ts";
import { instanceModels } from "./model-endpoint.ts";
import { recordingRequest } from "./recording.ts";
import { environmentVariables, fieldLimits, knownFields, labels, startArguments, text } from "./request-fields.ts";
import { initCommand, mountPoints } from "./sandbox-options.ts";
import { secretNames } from "./secrets.ts";
import { inlineTask, task } from "./task.ts";
import { sandboxGrant } from "./task-sandboxes.ts";

export const instanceStatuses = ["Pending", "Creating", "Running", "Failed", "Terminated"] as const;
export type InstanceStatus = (typeof instanceStatuses)[number];

/**
 * How much of an instance its forks, or instances from a snapshot of it, continue with. `state`: the environment's state, a value. `files`: also the files of its sandbox.
 * `memory`: the sandbox with its processes, their memory and listening sockets.
 */
export const forkFidelities = ["state", "files", "memory"] as const;
export type ForkFidelity = (typeof forkFidelities)[number];

/** The stored snapshot that an instance was started from. */
export const startedFrom = z.object({ id: z.string(), name: z.string(), fidelity: z.enum(forkFidelities) });
export type StartedFrom = z.infer<typeof startedFrom>;

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
  /** Requested options that the engine does not support. */
  warnings: z.array(z.string()).nullish(),
  /** What makes the sandbox; only an AEnv platform reports this, as it does the next two. */
  engine: z.string().nullish(),
  /** Whether the sandbox can neither see nor harm the machine that it runs on. */
  isolated: z.boolean().nullish(),
  /** The version of the server. */
  server_version: z.string().nullish(),
  /** How much of its parent a fork continues with. */
  fork_fidelity: z.string().nullish(),
  started_from: startedFrom.nullish(),
  /** The instance to whose episode a child belongs, the instance at the top of the tree, and the names of the child below that one. */
  parent: z.string().nullish(),
  root: z.string().nullish(),
  path: z.string().nullish(),
  /** The base address for A2A clients; it ends with a slash. */
  a2a_url: z.string().nullish(),
  /** The link of the agent of each role; absent if the environment has no roles, else `agent_url` is null. */
  role_urls: z.record(roleName, z.string()).nullish(),
});
export type InstanceRecord = z.infer<typeof instance>;

/** One event of an instance's history. */
export const instanceEvent = z.looseObject({ at: z.string(), what: z.string() });
export type InstanceEvent = z.infer<typeof instanceEvent>;

/** A DNS label, so that it can also be the name of a pod. */
const instanceId = z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, "must be 1 to 63 lower-case letters, digits and '-'");

/** The body of `POST /env-instance`: the original's fields, then additional ones. */
export const createInstanceRequest = knownFields({
  envName: text(fieldLimits.referenceLength).optional(),
  datasource: text(fieldLimits.referenceLength).optional(),
  environment_variables: environmentVariables.optional(),
  arguments: startArguments.optional(),
  ttl: text(fieldLimits.shortLength).optional(),
  /** The ttl is the client's default: the environment's config takes precedence. */
  ttlIsFallback: z.boolean().optional(),
  owner: text(fieldLimits.nameLength).optional(),
  labels: labels.optional(),
  id: instanceId.optional(),
  task: text(fieldLimits.nameLength).optional(),
  seed: z.number().int().optional(),
  /** A state, or a stored snapshot: see `parseSnapshotRef`. */
  snapshot: z.unknown().optional(),
  /** May only narrow the environment's `deployConfig.egress`. */
  egress: egressPolicy.optional(),
  /** Variables whose values are secrets of the caller, by the secrets' names. */
  secrets: secretNames.optional(),
  /** The models that the environment's code calls, by name, instead of those that it declares. Keys in it are kept in memory only. */
  models: instanceModels.optional(),
  mount_points: mountPoints.nullish(),
  init_command: initCommand.nullish(),
});
export type CreateInstanceRequest = z.infer<typeof createInstanceRequest>;

/** A task: the id of a listed one, or a task of the client's own, for environments that take such tasks. */
export const episodeTask = z.union([text(fieldLimits.nameLength), inlineTask]);
export type EpisodeTask = z.infer<typeof episodeTask>;

/** The body by which the platform creates an instance in a sandbox. A fork of an episode whose task is not listed brings that task. */
export const createInSandboxRequest = createInstanceRequest.omit({ models: true }).extend({
  task: episodeTask.optional(),
  /** Set if its code may open sandboxes. */
  sandboxes: sandboxGrant.optional(),
  /** The names of the models that its code may call. */
  modelNames: z.array(modelName).optional(),
  /** The instances that belong to each of its episodes. */
  children: z.array(childGrant).optional(),
});

/** The body of `POST …/task/reset`: fields that are left out keep their values. */
export const resetRequest = knownFields({
  task: episodeTask.nullish(),
  seed: z.number().int().nullish(),
  /** The tools return what the environment's `observation` makes of their results, for agents that must not see rewards. */
  observations_only: z.boolean().optional(),
  /** Whether models are called, or answer from a recording. */
  recording: recordingRequest.optional(),
});
export type ResetRequest = z.infer<typeof resetRequest>;

/** The response of `POST …/task/reset`: the new episode and its first observation. */
export const resetResult = z.object({
  task: task.nullable(),
  seed: z.number().int(),
  /** Null if the environment has none; environments of older versions do not send it. */
  observation: (z.unknown() as z.ZodType<Json>).default(null),
});
export type ResetResult = z.infer<typeof resetResult>;

/** The body of a fork: the number of copies, or their ids, if the server has chosen them. */
export const forkRequest = knownFields({
  count: z.number().int().min(1).max(1_000).optional(),
  ids: z.array(instanceId).min(1).max(1_000).optional(),
  /** If absent: `state`, and for programs the most that can be copied of their sandbox. */
  fidelity: z.enum(forkFidelities).optional(),
}).refine(({ count, ids }) => (count === undefined) !== (ids === undefined), { message: "give either 'count' or 'ids'" });

/** The body by which the platform gives an instance in a copied sandbox its own id. */
export const renameRequest = knownFields({ id: instanceId });

/** The body of `POST /env-instance/:id/renew`. */
export const renewRequest = knownFields({ ttl: text(fieldLimits.shortLength) });
