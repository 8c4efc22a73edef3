import { invalidBundle, readTar, TAR_BLOCK, tarPadding, writeTarHeader } from "@aenv/contract";

/** One file of an archive. Folders exist only as parts of paths. */
export interface TarEntry {
  /** Relative, with `/` between its parts. */
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly isExecutable?: boolean;
}

/** The same entries, in any order, always give the same bytes. */
export function writeTar(entries: readonly TarEntry[]): Uint8Array {
  const sorted = entries.map((entry) => ({ ...entry, key: Buffer.from(entry.path) })).sort((a, b) => Buffer.compare(a.key, b.key));
  const blocks: Uint8Array[] = [];
  sorted.forEach(({ path, bytes, isExecutable = false }, index) => {
    if (sorted[index - 1]?.path === path) throw invalidBundle(`contains '${path}' twice`);
    blocks.push(writeTarHeader({ path, size: bytes.length, isExecutable }), bytes, new Uint8Array(tarPadding(bytes.length)));
  });
  blocks.push(new Uint8Array(2 * TAR_BLOCK));
  return Buffer.concat(blocks);
}

/** The files of an archive in memory. */
export async function readEntries(tar: Uint8Array): Promise<TarEntry[]> {
  const entries = new Map<string, TarEntry>();
  for await (const { path, isExecutable, body } of readTar(once(tar))) {
    if (entries.has(path)) throw invalidBundle(`contains '${path}' twice`);
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    entries.set(path, { path, bytes: Buffer.concat(chunks), ...(isExecutable && { isExecutable }) });
  }
  return [...entries.values()];
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
