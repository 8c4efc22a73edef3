import {
  latin1,
  latin1Bytes,
  readTarEntries,
  TAR_END,
  type TarEntry,
  type TarType,
  tarEntryHeader,
  tarPaddingBytes,
} from "@aenv/benchmark";
import { decodePath, type ExactFile, encodePath } from "@aenv/kit";

export { TAR_END, tarPaddingBytes };

/** An entry of an archive, with paths as the platform writes them. */
export interface ArchivedFile {
  /** Relative, with `/`; without a slash at the end. */
  readonly path: string;
  /** `whiteout` is a device with the number 0:0, which removes what is at the path. */
  readonly type: ExactFile["type"] | "hard link" | "pipe" | "whiteout";
  readonly size: number;
  readonly mode: number;
  readonly modifiedSec: number;
  /** Where a link leads. */
  readonly target: string;
  readonly uid?: number;
  readonly gid?: number;
  /** Records of the extended header, each byte as a character. */
  readonly records?: Readonly<Record<string, string>>;
}

const TYPES = {
  file: "file",
  directory: "directory",
  link: "symlink",
  "hard link": "hardlink",
  pipe: "fifo",
  whiteout: "character",
} as const;
const NAMES: ReadonlyMap<TarType | "other", ArchivedFile["type"]> = new Map([
  ["file", "file"],
  ["directory", "directory"],
  ["symlink", "link"],
  ["hardlink", "hard link"],
  ["fifo", "pipe"],
]);

export function archivedHeader({ path, type, size, mode, modifiedSec, target, uid = 0, gid = 0, records = {} }: ArchivedFile): Uint8Array {
  const entry: TarEntry = {
    path: latin1(encodePath(path)),
    type: type === "other" ? "file" : TYPES[type],
    linkPath: latin1(encodePath(target)),
    mode,
    uid,
    gid,
    size,
    mtimeSeconds: Math.floor(modifiedSec),
    major: 0,
    minor: 0,
    attributes: {},
  };
  return tarEntryHeader(entry, records);
}

/** Entries as an archive. */
export async function* writeArchive(
  entries: AsyncIterable<ArchivedFile & { readonly content: AsyncIterable<Uint8Array> }>,
): AsyncGenerator<Uint8Array> {
  for await (const entry of entries) {
    yield archivedHeader(entry);
    if (entry.type !== "file") continue;
    yield* entry.content;
    yield tarPaddingBytes(entry.size);
  }
  yield TAR_END;
}

/** The entries of an archive while it arrives. A content that is not read is skipped. */
export async function* readArchive(
  archive: AsyncIterable<Uint8Array>,
): AsyncGenerator<ArchivedFile & { content: AsyncIterable<Uint8Array> }> {
  for await (const { entry, records, content } of readTarEntries(archive)) {
    const { path, type, linkPath, mtimeSeconds, size, mode, uid, gid } = entry;
    const shown = decodePath(latin1Bytes(path)).replace(/\/+$/, "");
    const target = decodePath(latin1Bytes(linkPath));
    yield { path: shown, type: NAMES.get(type) ?? "other", size, mode, modifiedSec: mtimeSeconds, target, uid, gid, records, content };
  }
}
