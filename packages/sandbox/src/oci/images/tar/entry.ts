/** An entry of a tar archive. Texts hold one byte per character (latin1), because names on Linux are bytes of no known encoding. */
export interface TarEntry {
  readonly path: string;
  readonly type: TarType;
  readonly linkPath: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly mtimeSeconds: number;
  readonly major: number;
  readonly minor: number;
  readonly attributes: Readonly<Record<string, string>>;
}

/** The types and their letters in the archive. */
export const TYPES = { file: "0", hardlink: "1", symlink: "2", character: "3", block: "4", directory: "5", fifo: "6" } as const;

export type TarType = keyof typeof TYPES;

export const BLOCK = 512;

/** Extended attributes are records of this prefix. */
export const ATTRIBUTE = "SCHILY.xattr.";

/** The content of an entry is followed by zeros up to a whole block. */
export function paddingOf(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}
