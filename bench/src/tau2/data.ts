import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const BESIDE = fileURLToPath(new URL("../../../../shared/tau2/data", import.meta.url));

/** Where the benchmark's data is: what `TAU2_DATA_DIR` says, or beside the project. */
export const dataPath = process.env.TAU2_DATA_DIR || BESIDE;

/** What is missing of the data, or null. */
export function dataLacks(): string | null {
  const places = ["airline", "tau2/domains/airline", "data/tau2/domains/airline"].map((folder) => join(dataPath, folder, "db.json"));
  if (places.some((place) => existsSync(place))) return null;
  return `no airline/db.json in ${process.env.TAU2_DATA_DIR ? "TAU2_DATA_DIR" : "../shared/tau2/data"}; set TAU2_DATA_DIR to the benchmark's data`;
}

/** How every instance of the suite is set up: airline, nobody plays the user, and steps enough for any play. */
export const VARIABLES = { TAU2_DATA_DIR: dataPath, TAU2_DOMAIN: "airline", TAU2_SOLO_MODE: "false", TAU2_MAX_STEPS: "1000" };
