import { pathToFileURL } from "node:url";
import type { BenchModule } from "@aenv/kit";
import type { Benchmark } from "../project/benchmarks.ts";

/** The module that a benchmark's package exports as `./bench`; one without it has none of these abilities. */
export async function loadBenchModule({ benchModule }: Benchmark): Promise<BenchModule> {
  return benchModule === null ? {} : import(pathToFileURL(benchModule).href);
}
