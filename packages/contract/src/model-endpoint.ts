import * as z from "zod";
import { modelName } from "./model-calls.ts";
import { secretName } from "./secrets.ts";

/** Headers that belong to the connection, not to the caller. */
const RESERVED_HEADERS = new Set(["host", "connection", "content-length", "content-type", "transfer-encoding", "upgrade", "expect", "te"]);
const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}$/, "must be the name of an HTTP header")
  .refine((one) => !RESERVED_HEADERS.has(one.toLowerCase()), "is set by the server itself");
const headerText = z
  .string()
  .max(8_192)
  .regex(/^[\t\x20-\x7e\x80-\xff]*$/, "must be one line of text");

/** The caller's model endpoint. */
export const rolloutModel = z.strictObject({
  /** The path of the API is appended, and nothing else is changed. */
  base_url: z.url({ protocol: /^https?$/, error: "must be an http or https URL" }).max(2_000),
  api_key: headerText.default("none"),
  name: z.string().min(1).max(500).default("default"),
  api: z.enum(["chat", "responses", "messages"]).default("chat"),
  /** The party that records token ids: the service asks the endpoint for them, the trainer behind the endpoint does, or the service asks if it can. */
  tokens: z.enum(["service", "trainer", "auto"]).default("trainer"),
  sampling: z.record(z.string(), z.unknown()).default({}),
  /** Accepts sampling whose log-probabilities are biased, such as `top_p` below 1, although the service records tokens. */
  allow_truncated_sampling: z.boolean().default(false),
  extra_body: z.record(z.string(), z.unknown()).default({}),
  headers: z.record(headerName, headerText).default({}),
});
export type RolloutModel = z.infer<typeof rolloutModel>;

/** Models of one environment. */
const MAX_MODELS = 32;
const modelsOf = <T extends z.ZodType>(model: T) =>
  z.record(modelName, model).refine((models) => Object.keys(models).length <= MAX_MODELS, `must name at most ${MAX_MODELS} models`);

/** Models that `config.json` declares. The key is a secret of the publisher; it stays in the server. */
export const declaredModels = modelsOf(
  z.strictObject({
    baseUrl: rolloutModel.shape.base_url,
    name: z.string().min(1).max(500),
    api: rolloutModel.shape.api.removeDefault().optional(),
    /** The name of the secret with the key; an endpoint without keys needs none. */
    secret: secretName.optional(),
    sampling: rolloutModel.shape.sampling.removeDefault().optional(),
  }),
);
export type DeclaredModels = z.infer<typeof declaredModels>;

/** A model that a request gives to the code of an environment: as that of a rollout, or with the name of a secret instead of a key. */
export const instanceModel = rolloutModel.extend({ secret: secretName.optional() });
export type InstanceModel = z.infer<typeof instanceModel>;

export const instanceModels = modelsOf(instanceModel);
export type InstanceModels = z.infer<typeof instanceModels>;
/** The same as a client writes them: most fields have defaults. */
export type InstanceModelsInput = z.input<typeof instanceModels>;
