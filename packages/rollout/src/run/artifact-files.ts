import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type { Artifacts } from "../episode/artifacts.ts";

/** The files of a run's episodes, a folder for each episode that has some. */
export class ArtifactFiles {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** The folder of an episode, whose id ends with its task's number and its sample. */
  folderOf(episodeId: string): string {
    return join(this.path, episodeId.slice(episodeId.lastIndexOf("/") + 1));
  }

  /** Replaces those of an earlier attempt. A crash leaves all files or none. */
  async keep(episodeId: string, files: Artifacts): Promise<void> {
    const folder = this.folderOf(episodeId);
    await rm(folder, { recursive: true, force: true });
    if (files.size === 0) return;
    const part = `${folder}.part`;
    await rm(part, { recursive: true, force: true });
    for (const [path, bytes] of files) {
      await mkdir(dirname(join(part, path)), { recursive: true });
      await writeFile(join(part, path), bytes);
    }
    await rename(part, folder);
  }

  /** Files by relative path; empty if the episode has none. */
  read(episodeId: string): Map<string, Uint8Array> {
    const folder = this.folderOf(episodeId);
    if (!existsSync(folder)) return new Map();
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const paths = entries.map(({ parentPath, name }) => relative(folder, join(parentPath, name))).sort();
    return new Map(paths.map((path) => [path, readFileSync(join(folder, path))]));
  }

  /** How many episodes have files. */
  count(): number {
    return existsSync(this.path) ? readdirSync(this.path).filter((name) => !name.endsWith(".part")).length : 0;
  }
}
