export const BLOCK = 512;

/** An entry of a tar archive. Sockets, devices and other special files are not written by the platform. */
export interface TarEntry {
  /** Relative, with `/`; without a slash at the end. */
  readonly path: string;
  readonly type: "file" | "directory" | "link" | "other";
  readonly size: number;
  readonly mode: number;
  readonly modifiedSec: number;
  /** Where a symbolic link leads. */
  readonly target: string;
}

const TYPES = { "0": "file", "\0": "file", "5": "directory", "2": "link" } as const;
const FLAGS = { file: "0", directory: "5", link: "2", other: "0" } as const;

/** The zeros after a content of this size. */
export function padding(size: number): Uint8Array {
  return new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);
}

export const END_OF_ARCHIVE = new Uint8Array(2 * BLOCK);

/** The header of an entry, after a second one for a path that does not fit. */
export function headerBytes({ path, type, size, mode, modifiedSec, target }: TarEntry): Uint8Array {
  const records = [
    ...(fits(path) ? [] : [paxRecord("path", path)]),
    ...(fits(target) ? [] : [paxRecord("linkpath", target)]),
    ...(size < 8 ** 11 ? [] : [paxRecord("size", String(size))]),
  ];
  const shown = { path: fits(path) ? path : "long", target: fits(target) ? target : "long", size: size < 8 ** 11 ? size : 0 };
  const own = block(shown.path, FLAGS[type], shown.size, mode, modifiedSec, shown.target);
  if (records.length === 0) return own;
  const extra = Buffer.concat(records);
  return Buffer.concat([block("pax", "x", extra.length, 0o644, 0, ""), extra, padding(extra.length), own]);
}

/** The entry of a header block, with the values of a second header before it; null for a block of zeros. Throws for a damaged one. */
export function parseHeader(bytes: Buffer, pax: ReadonlyMap<string, string>): (TarEntry & { readonly flag: string }) | null {
  if (bytes.every((byte) => byte === 0)) return null;
  const text = (from: number, length: number): string => bytes.toString("utf8", from, from + length).replace(/\0.*$/s, "");
  const octal = (from: number, length: number): number => Number.parseInt(text(from, length).trim() || "0", 8);
  if (octal(148, 8) !== checksum(bytes)) throw new Error("the archive is damaged: the checksum of a header is wrong");
  const flag = String.fromCharCode(bytes[156] ?? 0);
  const prefix = text(345, 155);
  const path = pax.get("path") ?? (prefix === "" ? text(0, 100) : `${prefix}/${text(0, 100)}`);
  return {
    path: path.replace(/\/+$/, ""),
    type: TYPES[flag as keyof typeof TYPES] ?? "other",
    size: Number(pax.get("size") ?? octal(124, 12)),
    mode: octal(100, 8),
    modifiedSec: Number(pax.get("mtime") ?? octal(136, 12)),
    target: pax.get("linkpath") ?? text(157, 100),
    flag,
  };
}

/** The records of a second header: `LENGTH KEY=VALUE\n`. */
export function parsePax(bytes: Buffer): Map<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(" ", at);
    const length = Number(bytes.toString("latin1", at, space));
    if (space < 0 || !Number.isInteger(length) || length <= 0) throw new Error("the archive is damaged: a record has no length");
    const record = bytes.toString("utf8", space + 1, at + length - 1);
    const equals = record.indexOf("=");
    found.set(record.slice(0, equals), record.slice(equals + 1));
    at += length;
  }
  return found;
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) <= 100 && /^[\x20-\x7e]*$/.test(text);
}

function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.from(` ${key}=${value}\n`);
  let length = rest.length;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

function block(path: string, flag: string, size: number, mode: number, modifiedSec: number, target: string): Buffer {
  const bytes = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number) => bytes.write(value.toString(8).padStart(length - 1, "0"), at, "latin1");
  bytes.write(path, 0);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(Math.max(0, Math.floor(modifiedSec)), 136, 12);
  bytes.write(flag, 156);
  bytes.write(target, 157);
  bytes.write("ustar\x0000", 257, "latin1");
  bytes.write(`${checksum(bytes).toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return bytes;
}

/** The sum of all bytes, with spaces in place of the checksum itself. */
function checksum(bytes: Buffer): number {
  return bytes.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 32 : byte), 0);
}
