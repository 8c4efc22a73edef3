import * as z from "zod";

/** A bundle's manifest.json: which environment it is, which file to start, and every other file of the bundle. */
export const bundleManifest = z.looseObject({
  format: z.literal(1),
  name: z.string(),
  version: z.string(),
  /** `node <main>` serves the environment; absent if config.json names a command (`runtime`). */
  main: z.string().optional(),
  files: z.array(z.looseObject({ path: z.string(), size: z.number(), sha256: z.string() })),
});

export type BundleManifest = z.infer<typeof bundleManifest>;
