import { invalidBundle, isTarEnd, readTarHeader, TAR_BLOCK, tarPadding, writeTarHeader } from "@aenv/contract";

/** One file of an archive. Folders exist only as parts of paths. */
export interface TarEntry {
  /** Relative, with `/` between its parts. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** The same entries, in any order, always give the same bytes. */
export function writeTar(entries: readonly TarEntry[]): Uint8Array {
  const sorted = entries.map((entry) => ({ ...entry, key: Buffer.from(entry.path) })).sort((a, b) => Buffer.compare(a.key, b.key));
  const blocks: Uint8Array[] = [];
  sorted.forEach(({ path, bytes }, index) => {
    if (sorted[index - 1]?.path === path) throw invalidBundle(`holds '${path}' twice`);
    blocks.push(writeTarHeader({ path, size: bytes.length }), bytes, new Uint8Array(tarPadding(bytes.length)));
  });
  blocks.push(new Uint8Array(2 * TAR_BLOCK));
  return Buffer.concat(blocks);
}

/** The files of an archive; damaged ones, and ones with links or paths that lead outside, are refused. */
export function readTar(bytes: Uint8Array): TarEntry[] {
  const entries = new Map<string, TarEntry>();
  let at = 0;
  for (;;) {
    const block = bytes.subarray(at, at + TAR_BLOCK);
    if (block.length < TAR_BLOCK) throw invalidBundle("ends too early");
    at += TAR_BLOCK;
    if (isTarEnd(block)) break;
    const { path, size } = readTarHeader(block);
    if (at + size > bytes.length) throw invalidBundle(`ends within '${path}'`);
    if (entries.has(path)) throw invalidBundle(`holds '${path}' twice`);
    entries.set(path, { path, bytes: bytes.slice(at, at + size) });
    at += size + tarPadding(size);
  }
  return [...entries.values()];
}
