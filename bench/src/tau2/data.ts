import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const BESIDE = fileURLToPath(new URL("../../../../shared/tau2/data", import.meta.url));

/** Folder of the benchmark's data: `TAU2_DATA_DIR`, or beside the project. */
export const dataPath = process.env.TAU2_DATA_DIR || BESIDE;

/** The missing part of the data, or null. */
export function dataLacks(): string | null {
  const places = ["airline", "tau2/domains/airline", "data/tau2/domains/airline"].map((folder) => join(dataPath, folder, "db.json"));
  if (places.some((place) => existsSync(place))) return null;
  return `no airline/db.json in ${process.env.TAU2_DATA_DIR ? "TAU2_DATA_DIR" : "../shared/tau2/data"}; set TAU2_DATA_DIR to the benchmark's data`;
}

/** Options of every instance of the suite: airline, no simulated user, and enough steps for any task. */
export const VARIABLES = { TAU2_DATA_DIR: dataPath, TAU2_DOMAIN: "airline", TAU2_SOLO_MODE: "false", TAU2_MAX_STEPS: "1000" };
