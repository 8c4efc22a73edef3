import * as z from "zod";
import { environment } from "./environment.ts";
import { environmentVariables, fieldLimits, knownFields, text } from "./request-fields.ts";

/** A service in the wire format: a named set of replicas of an environment behind one address. */
export const service = z.looseObject({
  id: z.string().min(1),
  env: environment.nullish(),
  status: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
  replicas: z.number().int(),
  available_replicas: z.number().int(),
  /** Host, port and path, without a scheme; the original's has no path. */
  service_url: z.string().nullish(),
  owner: z.string().nullish(),
  environment_variables: z.record(z.string(), z.string()).nullish(),
  pvc_name: z.string().nullish(),
});
export type ServiceRecord = z.infer<typeof service>;

const MAX_REPLICAS = 1_000;
const dnsName = z
  .string()
  .max(253)
  .regex(
    /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/,
    "must be lower-case letters, digits, '-' and '.', as in a DNS name",
  );
/** Clients send an empty string for a field that is not set. */
const orEmpty = (name: z.ZodType<string>) => z.union([z.literal(""), name]).optional();

/** The body of `POST /env-service`. Fields that only containers support are accepted and ignored by other engines. */
export const createServiceRequest = knownFields({
  envName: text(fieldLimits.referenceLength).min(1),
  service_name: orEmpty(dnsName),
  /** 0 is 1, as in the original. */
  replicas: z.number().int().min(0).max(MAX_REPLICAS).optional(),
  environment_variables: environmentVariables.optional(),
  owner: text(fieldLimits.nameLength).optional(),
  pvc_name: orEmpty(dnsName),
  mount_path: text(fieldLimits.referenceLength).optional(),
  storage_size: text(fieldLimits.shortLength).optional(),
  port: z.number().int().min(0).max(65_535).optional(),
  cpu_request: text(fieldLimits.shortLength).optional(),
  cpu_limit: text(fieldLimits.shortLength).optional(),
  memory_request: text(fieldLimits.shortLength).optional(),
  memory_limit: text(fieldLimits.shortLength).optional(),
  ephemeral_storage_request: text(fieldLimits.shortLength).optional(),
  ephemeral_storage_limit: text(fieldLimits.shortLength).optional(),
});
export type CreateServiceRequest = z.infer<typeof createServiceRequest>;

/** The body of `PUT /env-service/:id`: fields that are left out keep their values, and variables are added to the existing ones. */
export const updateServiceRequest = knownFields({
  replicas: z.number().int().min(0).max(MAX_REPLICAS).optional(),
  image: text(fieldLimits.referenceLength).optional(),
  environment_variables: environmentVariables.optional(),
});
export type UpdateServiceRequest = z.infer<typeof updateServiceRequest>;
