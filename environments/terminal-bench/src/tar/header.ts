import { decodePath, encodePath } from "@aenv/kit";

export const BLOCK = 512;

/** An entry of a tar archive. */
export interface TarEntry {
  /** Relative, with `/`; without a slash at the end. */
  readonly path: string;
  /** `whiteout` is a device with the number 0:0, which removes what is at the path. */
  readonly type: "file" | "directory" | "link" | "hard link" | "pipe" | "whiteout" | "other";
  readonly size: number;
  readonly mode: number;
  readonly modifiedSec: number;
  /** Where a link leads. */
  readonly target: string;
  readonly uid?: number;
  readonly gid?: number;
  /** Further values of the second header, each byte as a character. */
  readonly records?: ReadonlyMap<string, string>;
}

const FLAGS = { file: "0", directory: "5", link: "2", "hard link": "1", pipe: "6", whiteout: "3", other: "0" } as const;
const TYPES: Readonly<Record<string, TarEntry["type"]>> = {
  "0": "file",
  "\0": "file",
  "5": "directory",
  "2": "link",
  "1": "hard link",
  "6": "pipe",
};
/** The largest user in a header. */
const MAX_USER = 8 ** 7 - 1;

/** The zeros after a content of this size. */
export function padding(size: number): Uint8Array {
  return new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);
}

export const END_OF_ARCHIVE = new Uint8Array(2 * BLOCK);

/** The header of an entry, after a second one for a path that does not fit. */
export function headerBytes({ path, type, size, mode, modifiedSec, target, uid = 0, gid = 0, records: more = NONE }: TarEntry): Uint8Array {
  const records = [
    ...[...more].map(([key, value]) => paxRecord(key, Buffer.from(value, "latin1"))),
    ...(uid > MAX_USER ? [paxRecord("uid", String(uid))] : []),
    ...(gid > MAX_USER ? [paxRecord("gid", String(gid))] : []),
    ...(fits(path) ? [] : [paxRecord("path", encodePath(path))]),
    ...(fits(target) ? [] : [paxRecord("linkpath", encodePath(target))]),
    ...(size < 8 ** 11 ? [] : [paxRecord("size", String(size))]),
  ];
  const shown = { path: fits(path) ? path : "long", target: fits(target) ? target : "long", size: size < 8 ** 11 ? size : 0 };
  const owner = { uid: Math.min(uid, MAX_USER), gid: Math.min(gid, MAX_USER) };
  const own = block({ ...shown, ...owner, flag: FLAGS[type], mode, modifiedSec });
  if (records.length === 0) return own;
  const extra = Buffer.concat(records);
  return Buffer.concat([
    block({ path: "pax", flag: "x", size: extra.length, mode: 0o644, uid: 0, gid: 0, modifiedSec: 0, target: "" }),
    extra,
    padding(extra.length),
    own,
  ]);
}

/** The entry of a header block, with the values of a second header before it; null for a block of zeros. Throws for a damaged one. */
export function parseHeader(bytes: Buffer, pax: ReadonlyMap<string, string>): (TarEntry & { readonly flag: string }) | null {
  if (bytes.every((byte) => byte === 0)) return null;
  const text = (from: number, length: number): string => bytes.toString("utf8", from, from + length).replace(/\0.*$/s, "");
  const octal = (from: number, length: number): number => Number.parseInt(text(from, length).trim() || "0", 8);
  if (octal(148, 8) !== checksum(bytes)) throw new Error("the archive is damaged: the checksum of a header is wrong");
  const flag = String.fromCharCode(bytes[156] ?? 0);
  const prefix = text(345, 155);
  const inPax = (key: string) => (pax.has(key) ? decodePath(Buffer.from(pax.get(key) ?? "", "latin1")) : undefined);
  const path = inPax("path") ?? (prefix === "" ? text(0, 100) : `${prefix}/${text(0, 100)}`);
  return {
    path: path.replace(/\/+$/, ""),
    type: TYPES[flag] ?? "other",
    size: Number(pax.get("size") ?? octal(124, 12)),
    mode: octal(100, 8),
    modifiedSec: Number(pax.get("mtime") ?? octal(136, 12)),
    target: inPax("linkpath") ?? text(157, 100),
    uid: Number(pax.get("uid") ?? octal(108, 8)),
    gid: Number(pax.get("gid") ?? octal(116, 8)),
    records: pax,
    flag,
  };
}

/** The records of a second header, `LENGTH KEY=VALUE\n`, with a character for each byte. */
export function parsePax(bytes: Buffer): Map<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(" ", at);
    const length = Number(bytes.toString("latin1", at, space));
    if (space < 0 || !Number.isInteger(length) || length <= 0) throw new Error("the archive is damaged: a record has no length");
    const record = bytes.toString("latin1", space + 1, at + length - 1);
    const equals = record.indexOf("=");
    found.set(record.slice(0, equals), record.slice(equals + 1));
    at += length;
  }
  return found;
}

const NONE: ReadonlyMap<string, string> = new Map();

function fits(text: string): boolean {
  return Buffer.byteLength(text) <= 100 && /^[\x20-\x7e]*$/.test(text);
}

function paxRecord(key: string, value: string | Uint8Array): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value as string), Buffer.from("\n")]);
  let length = rest.length;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

type Block = Required<Omit<TarEntry, "type" | "records">> & { readonly flag: string };

function block({ path, flag, size, mode, uid, gid, modifiedSec, target }: Block): Buffer {
  const bytes = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number) => bytes.write(value.toString(8).padStart(length - 1, "0"), at, "latin1");
  bytes.write(path, 0);
  octal(mode, 100, 8);
  octal(uid, 108, 8);
  octal(gid, 116, 8);
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
