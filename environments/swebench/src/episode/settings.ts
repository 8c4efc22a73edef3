import { existsSync } from "node:fs";
import { join } from "node:path";
import { nearestName } from "@aenv/kit";
import { DEFAULT_TIMEOUT_SECONDS } from "../evaluate/evaluate.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

/** The settings of an instance, from `SWE_BENCH_*` variables. */
export interface Settings {
  readonly dataFolder: string;
  /** Time limit of the tests. */
  readonly timeoutSeconds: number;
  /** Leave files that decide how the tests are run out of the agent's patch, and do not believe output with additional markers. */
  readonly isStrict: boolean;
  /** What may connect to other machines: nothing, the tests, or the agent too. */
  readonly network: (typeof NETWORKS)[number];
}

const NETWORKS = ["none", "tests", "all"] as const;
const KNOWN = ["SWE_BENCH_DATA_DIR", "SWE_BENCH_TIMEOUT", "SWE_BENCH_STRICT", "SWE_BENCH_NETWORK"];

export function readSettings(variables: Variables): Settings {
  checkNames(variables);
  const network = variables.SWE_BENCH_NETWORK || "none";
  if (!isNetwork(network)) throw new Error(`SWE_BENCH_NETWORK is '${network}'; it must be one of ${NETWORKS.join(", ")}`);
  const timeout = variables.SWE_BENCH_TIMEOUT || String(DEFAULT_TIMEOUT_SECONDS);
  if (!/^[1-9]\d{0,5}$/.test(timeout)) throw new Error(`SWE_BENCH_TIMEOUT is '${timeout}'; it must be a number of seconds`);
  const strict = variables.SWE_BENCH_STRICT || "true";
  if (strict !== "true" && strict !== "false") throw new Error(`SWE_BENCH_STRICT is '${strict}'; it must be true or false`);
  return { dataFolder: dataFolder(variables), timeoutSeconds: Number(timeout), isStrict: strict === "true", network };
}

/** Without this check, a mistyped variable would have no effect and no error. */
function checkNames(variables: Variables): void {
  for (const name of Object.keys(variables)) {
    if (!name.startsWith("SWE_BENCH_") || KNOWN.includes(name)) continue;
    const meant = nearestName(name, KNOWN);
    throw new Error(
      `swe-bench has no variable ${name}; ${meant === null ? `its variables are ${KNOWN.join(", ")}` : `did you mean ${meant}?`}`,
    );
  }
}

function isNetwork(text: string): text is Settings["network"] {
  return (NETWORKS as readonly string[]).includes(text);
}

/** `SWE_BENCH_DATA_DIR`, else the folder that `aenv bench data swe-bench` has prepared. */
function dataFolder({ SWE_BENCH_DATA_DIR: own, AENV_DATA_DIR: all }: Variables): string {
  const folder = own || (all ? join(all, "swe-bench") : null);
  if (folder !== null && existsSync(folder)) return folder;
  const place = folder === null ? "neither SWE_BENCH_DATA_DIR nor AENV_DATA_DIR is set" : `${folder} does not exist`;
  throw new Error(
    `swe-bench has no data: ${place}; prepare it with: aenv bench data swe-bench --from DATASET, a .json, .jsonl or .parquet file or a task repository`,
  );
}
