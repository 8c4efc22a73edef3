import { existsSync } from "node:fs";
import { join } from "node:path";
import { openDataset, TASKS_FOLDER } from "../data/folder.ts";
import { selectRows } from "../dataset/load.ts";
import { columnText, instanceIdOf, type Row } from "../dataset/row.ts";

/** The image of each instance. */
export async function imagesOf(dataFolder: string, taskIds: readonly string[] = []): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = selectRows((await openDataset(dataFolder)).rows, taskIds);
  return new Map(rows.map((row) => [instanceIdOf(row), [columnText(row, "image")]]));
}

/** Dockerfiles, which only task repositories have. */
export async function imageSources(dataFolder: string, taskIds: readonly string[] = []) {
  const rows = selectRows((await openDataset(dataFolder)).rows, taskIds);
  const folderOf = (row: Row) => join(dataFolder, TASKS_FOLDER, instanceIdOf(row));
  return rows
    .filter((row) => existsSync(join(folderOf(row), "Dockerfile")))
    .map((row) => ({ image: columnText(row, "image"), context: folderOf(row) }));
}
