import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { TaskFiles } from "@aenv/kit";
import { HIDDEN } from "../compose/hidden.ts";
import type { ComposeTask } from "../compose/of-task.ts";
import type { ComposeVolume } from "../compose/volume.ts";
import { folderArchive } from "../platform/archive-folder.ts";
import { isFile, isFolder } from "../task/files.ts";

const MAX_FILES = 1_000_000;

/** Whether a volume is a single file of the task. */
export async function isFileOfTask(task: ComposeTask, { source }: ComposeVolume): Promise<boolean> {
  return source !== null && (await isFile(sourceOf(task, source)));
}

/**
 * Puts a file or folder of the task to where its compose file mounts it, in place of what the image has there. It is a copy: what a
 * sandbox writes does not reach the task. Of a whole task, the files that its agent must not see are left out.
 */
export async function copyMount(task: ComposeTask, files: TaskFiles, { source, path }: ComposeVolume): Promise<void> {
  if (source === null) return files.mkdir(path);
  const from = sourceOf(task, source);
  if (await isFile(from)) {
    const { mode } = await stat(from);
    return files.write(path, createReadStream(from) as AsyncIterable<Uint8Array>, { mode: mode & 0o777 });
  }
  await files.mkdir(path);
  for (const entry of await files.list(path, { limit: MAX_FILES })) await files.remove(`${path}/${entry.path}`, { recursive: true });
  const isWhole = from === task.folder;
  // A source that does not exist is created by Docker.
  if (await isFolder(from))
    await files.upload(
      path,
      folderArchive(from, (entry) => isWhole && HIDDEN.includes(entry)),
    );
}

function sourceOf({ definition }: ComposeTask, source: string): string {
  return join(dirname(definition.file), source);
}
