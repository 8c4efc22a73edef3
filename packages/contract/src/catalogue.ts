import * as z from "zod";

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
});
export type Catalogue = z.infer<typeof catalogue>;
