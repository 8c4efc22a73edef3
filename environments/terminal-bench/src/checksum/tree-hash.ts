import { compareText } from "@aenv/benchmark";
import { ignoreRules } from "../task/ignore.ts";
import { type HashedFile, hashFiles, sha256 } from "./files.ts";

interface Folder {
  readonly files: Map<string, string>;
  readonly folders: Map<string, Folder>;
}

/** The checksum of a task in result files: every file counts that `.harborignore` does not leave out; folders without files do not. */
export async function taskChecksum(folder: string): Promise<string> {
  return treeHash(await hashFiles(folder, { isIgnored: ignoreRules(folder) }));
}

/** The checksum of any folder, with all its files. */
export async function folderChecksum(folder: string): Promise<string> {
  return treeHash(await hashFiles(folder));
}

/** The hash of a tree of files. */
export function treeHash(files: readonly Pick<HashedFile, "path" | "sha256">[]): string {
  if (files.length === 0) throw new Error("a folder without files has no checksum");
  const root = emptyFolder();
  for (const { path, sha256: hash } of files) {
    const names = path.split("/");
    const name = names.pop() ?? "";
    let at = root;
    for (const part of names) {
      const next = at.folders.get(part) ?? emptyFolder();
      at.folders.set(part, next);
      at = next;
    }
    at.files.set(name, hash);
  }
  return folderHash(root);
}

function emptyFolder(): Folder {
  return { files: new Map(), folders: new Map() };
}

function folderHash({ files, folders }: Folder): string {
  const entries = [
    ...[...files].map(([name, hash]) => entryText(`data:${hash}`, name)),
    ...[...folders].map(([name, folder]) => entryText(`dirhash:${folderHash(folder)}`, name)),
  ];
  return sha256(entries.sort(compareText).join("\0\0"));
}

function entryText(content: string, name: string): string {
  return [content, `name:${name}`].sort(compareText).join("\0");
}
