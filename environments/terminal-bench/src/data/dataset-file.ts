import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Describes a prepared data folder. */
export const DATASET_FILE = "dataset.json";

/** The name of the dataset that was prepared here; null if the folder was not prepared. */
export async function readDatasetName(folder: string): Promise<string | null> {
  const text = await readFile(join(folder, DATASET_FILE), "utf8").catch(() => null);
  const name: unknown = text === null ? null : JSON.parse(text).name;
  return typeof name === "string" ? name : null;
}
