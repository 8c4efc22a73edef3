import * as z from "zod";
import { episodeAbilities } from "./episode.ts";

/** A function, reward or health check as `/functions/list` describes it. */
export const catalogueEntry = z.looseObject({
  name: z.string(),
  endpoint: z.string(),
  method: z.string(),
  description: z.string().default(""),
  parameters: z.record(z.string(), z.looseObject({ type: z.string(), default: z.string().nullish() })).default({}),
  is_async: z.boolean().default(true),
});
export type CatalogueEntry = z.infer<typeof catalogueEntry>;

export const catalogue = z.looseObject({
  total: z.number().int(),
  functions: z.array(catalogueEntry).default([]),
  reward: z.array(catalogueEntry).default([]),
  health: z.array(catalogueEntry).default([]),
  /** Which optional parts of an episode the environment defines; absent where the server does not know them. */
  episode: episodeAbilities.optional(),
});
export type Catalogue = z.infer<typeof catalogue>;
