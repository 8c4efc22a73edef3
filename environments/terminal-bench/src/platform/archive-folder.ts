import { createReadStream } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { archivedHeader, TAR_END, tarPaddingBytes } from "./archive-entry.ts";

/** The content of a folder of the host as an archive: files, folders and symbolic links, but for what is left out by its path. */
export async function* folderArchive(folder: string, isLeftOut: (path: string) => boolean = () => false): AsyncGenerator<Uint8Array> {
  yield* entriesOf(folder, "", isLeftOut);
  yield TAR_END;
}

async function* entriesOf(root: string, inner: string, isLeftOut: (path: string) => boolean): AsyncGenerator<Uint8Array> {
  for (const name of (await readdir(join(root, inner))).sort()) {
    const path = inner === "" ? name : `${inner}/${name}`;
    if (isLeftOut(path)) continue;
    const found = await lstat(join(root, path));
    const entry = { path, size: 0, mode: found.mode & 0o777, modifiedSec: found.mtimeMs / 1_000, target: "" };
    if (found.isDirectory()) {
      yield archivedHeader({ ...entry, type: "directory" });
      yield* entriesOf(root, path, isLeftOut);
    } else if (found.isSymbolicLink()) {
      yield archivedHeader({ ...entry, type: "link", target: await readlink(join(root, path)) });
    } else if (found.isFile()) {
      yield archivedHeader({ ...entry, type: "file", size: found.size });
      if (found.size > 0) yield* createReadStream(join(root, path), { end: found.size - 1 }) as AsyncIterable<Buffer>;
      yield tarPaddingBytes(found.size);
    }
  }
}
