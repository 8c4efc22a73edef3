import * as z from "zod";

/** A published environment's status; the wire carries the index. */
export const environmentStatuses = [
  "Init",
  "Pending",
  "Creating",
  "Created",
  "Testing",
  "Verified",
  "Ready",
  "Released",
  "Failed",
] as const;
export type EnvironmentStatus = (typeof environmentStatuses)[number];

/** Who finds a published environment besides its owner: nobody, everybody, or named owners. */
export const visibilities = ["private", "public", "shared"] as const;
export type Visibility = (typeof visibilities)[number];

export const artifact = z.object({ id: z.string().default(""), type: z.string(), content: z.string() });

/** A published environment as the hub's wire format has it. */
export const environment = z.looseObject({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  version: z.string(),
  tags: z.array(z.string()).nullish(),
  code_url: z.string(),
  status: z.number().int(),
  artifacts: z.array(artifact).nullish(),
  build_config: z.record(z.string(), z.unknown()).nullish(),
  test_config: z.record(z.string(), z.unknown()).nullish(),
  deploy_config: z.record(z.string(), z.unknown()).nullish(),
  created_at: z.string(),
  updated_at: z.string(),
});
export type EnvironmentRecord = z.infer<typeof environment>;

/** One event of a version's history. */
export const historyEvent = z.looseObject({ at: z.string(), by: z.string(), what: z.string(), detail: z.string().optional() });

/** One version of an environment, with its history. Only an AEnv hub reports it. */
export const versionRecord = z.looseObject({
  name: z.string(),
  version: z.string(),
  owner: z.string(),
  publisher: z.string(),
  status: z.enum(environmentStatuses),
  visibility: z.enum(visibilities),
  sharedWith: z.array(z.string()),
  description: z.string(),
  bundleDigest: z.string().nullable(),
  createdAt: z.string(),
  updatedAt: z.string(),
  history: z.array(historyEvent),
});
export type VersionRecord = z.infer<typeof versionRecord>;
