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
export const TAR_TYPES = { file: "0", hardlink: "1", symlink: "2", character: "3", block: "4", directory: "5", fifo: "6" } as const;

export type TarType = keyof typeof TAR_TYPES;

/** A header is one block; a content is padded to whole blocks. */
export const TAR_BLOCK = 512;

/** Extended attributes are records of this prefix. */
export const TAR_ATTRIBUTE = "SCHILY.xattr.";

const FIELDS = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  link: [157, 100],
  magic: [257, 8],
  major: [329, 8],
  minor: [337, 8],
  prefix: [345, 155],
} as const satisfies Record<string, readonly [offset: number, width: number]>;

export type TarField = keyof typeof FIELDS;

/** The magic of ustar (POSIX.1-1988) with its version. */
export const USTAR = "ustar\x0000";

/** A header of these fields. Numbers are written in octal; texts have a byte per character, and are cut if they are too long. */
export function tarBlock(fields: Partial<Record<TarField, number | string>>): Uint8Array {
  const block = new Uint8Array(TAR_BLOCK);
  for (const [name, value] of Object.entries(fields) as [TarField, number | string][])
    put(block, name, typeof value === "number" ? value.toString(8).padStart(FIELDS[name][1] - 1, "0") : value);
  put(block, "magic", USTAR);
  put(block, "checksum", `${tarChecksum(block).toString(8).padStart(6, "0")}\0 `);
  return block;
}

function put(block: Uint8Array, name: TarField, text: string): void {
  const [start, width] = FIELDS[name];
  for (let at = 0; at < width && at < text.length; at++) block[start + at] = text.charCodeAt(at);
}

export function tarField(block: Uint8Array, name: TarField): Uint8Array {
  const [start, width] = FIELDS[name];
  return block.subarray(start, start + width);
}

/** The sum of all bytes, with the checksum's own field read as spaces. */
export function tarChecksum(block: Uint8Array): number {
  const [start, width] = FIELDS.checksum;
  let sum = 0x20 * width;
  for (let at = 0; at < TAR_BLOCK; at++) if (at < start || at >= start + width) sum += block[at] ?? 0;
  return sum;
}

/** The number of zeros after a content, up to a whole block. */
export function tarPadding(size: number): number {
  return (TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK;
}

/** Whether a block has only zeros, which ends an archive. */
export function isTarEnd(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

/** Each byte as a character. */
export function latin1(bytes: Uint8Array): string {
  let text = "";
  // In parts: a call has a limited number of arguments.
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return text;
}

export function latin1Bytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}
