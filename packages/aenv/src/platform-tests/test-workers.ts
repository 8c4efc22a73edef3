import { createRequire } from "node:module";
import { join } from "node:path";
import { cacheFolder } from "./bundles.ts";

/** How many processes serve the data port of a test's server. `AENV_TEST_WORKERS=2` runs any of these tests with workers. */
export const testWorkers = Number(process.env.AENV_TEST_WORKERS ?? "1");

export const testWorker = [
  process.execPath,
  createRequire(import.meta.url).resolve("@aenv/server/worker"),
  "--compile-cache",
  join(cacheFolder, "worker"),
];
