import type { Command } from "commander";
import { collect } from "../options/pairs.ts";

/** What names the data of a benchmark. */
export interface DataOptions {
  readonly from?: string;
  readonly domain?: readonly string[];
}

export function addDataOptions(command: Command): Command {
  return command
    .option("--from <dir-or-url>", "the benchmark's data; that of 'aenv bench data' if not given")
    .option("--domain <name>", "only this part of what --from names, such as a dataset of a registry file; may be repeated", collect);
}
