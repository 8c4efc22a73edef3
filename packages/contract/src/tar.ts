import { PlatformError } from "./errors.ts";

/** The header of a file in an archive. */
export interface TarHeader {
  /** Relative, with `/` as the separator, and inside the target folder. */
  readonly path: string;
  readonly size: number;
  /** False by default. */
  readonly isExecutable?: boolean;
}

/** A header is one block; a file is padded to whole blocks. */
export const TAR_BLOCK = 512;

// A small part of the ustar format (POSIX.1-1988): regular files only, and nothing in a header that could differ
// between two machines. Offsets and widths of the fields in use:
const field = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  magic: [257, 8],
  prefix: [345, 155],
} as const satisfies Record<string, readonly [offset: number, width: number]>;
const MAGIC = "ustar\x0000";
const MAX_SIZE = 8 ** 11 - 1;

const toUtf8 = new TextEncoder();
const fromUtf8 = new TextDecoder("utf-8", { fatal: true });

/** The header of a plain file in a bundle's archive. */
export function writeTarHeader({ path, size, isExecutable = false }: TarHeader): Uint8Array {
  assertInside(path);
  if (size > MAX_SIZE) throw invalidBundle(`cannot contain ${shown(path)}: it is larger than 8 GiB`);
  const [prefix, name] = splitPath(path);
  const block = new Uint8Array(TAR_BLOCK);
  put(block, "name", name);
  put(block, "mode", toUtf8.encode(isExecutable ? "0000755\0" : "0000644\0"));
  put(block, "uid", toUtf8.encode("0000000\0"));
  put(block, "gid", toUtf8.encode("0000000\0"));
  put(block, "size", toUtf8.encode(`${size.toString(8).padStart(11, "0")}\0`));
  put(block, "mtime", toUtf8.encode("00000000000\0"));
  put(block, "type", toUtf8.encode("0"));
  put(block, "magic", toUtf8.encode(MAGIC));
  put(block, "prefix", prefix);
  put(block, "checksum", toUtf8.encode(`${checksum(block).toString(8).padStart(6, "0")}\0 `));
  return block;
}

/**
 * Reads the headers that `writeTarHeader` writes and no others. Links, devices, folders as entries and every extension of the
 * format (pax, GNU) are refused: a second encoding of a path or size could bypass the checks.
 */
export function readTarHeader(block: Uint8Array): TarHeader {
  if (text(block, "magic", false) !== MAGIC) throw invalidBundle("is not a ustar archive");
  if (octal(block, "checksum") !== checksum(block)) throw invalidBundle("has a damaged header");
  const [prefix, name] = [text(block, "prefix"), text(block, "name")];
  const path = prefix === "" ? name : `${prefix}/${name}`;
  const type = text(block, "type");
  if (type === "1" || type === "2") throw invalidBundle(`contains a link, ${shown(path)}`);
  if (type !== "0" && type !== "") throw invalidBundle(`contains ${shown(path)}, which is not a plain file (type ${shown(type)})`);
  const mode = octal(block, "mode");
  if ((mode & ~0o777) !== 0) throw invalidBundle(`gives ${shown(path)} an invalid mode, ${mode.toString(8)}`);
  assertInside(path);
  return { path, size: octal(block, "size"), isExecutable: (mode & 0o100) !== 0 };
}

/** The number of padding bytes in a file's last block. */
export function tarPadding(size: number): number {
  return (TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK;
}

/** Whether a block has only zeros, which ends an archive. */
export function isTarEnd(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

/** An error for an invalid bundle; the message begins with "the bundle". */
export function invalidBundle(what: string): PlatformError {
  return new PlatformError("bundle.invalid", `the bundle ${what}`);
}

/** Throws unless the path stays inside its target folder, on every system. */
function assertInside(path: string): void {
  const isInside = path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (isInside && !/[\\\x00-\x1f\x7f]|^[A-Za-z]:/.test(path)) return;
  throw invalidBundle(`must not contain the path ${shown(path)}: it must be relative, without '.', '..', '\\' or control characters`);
}

/** `name` holds up to 100 bytes; a longer path is split at a `/` into `prefix` and `name`. */
function splitPath(path: string): [prefix: Uint8Array, name: Uint8Array] {
  const whole = toUtf8.encode(path);
  if (whole.length <= field.name[1]) return [new Uint8Array(0), whole];
  const slash = whole.subarray(0, field.prefix[1] + 1).lastIndexOf(0x2f);
  const [prefix, name] = [whole.subarray(0, Math.max(0, slash)), whole.subarray(slash + 1)];
  if (slash < 1 || name.length > field.name[1]) throw invalidBundle(`cannot contain the path ${shown(path)}: it is too long`);
  return [prefix, name];
}

/** The sum of all bytes, with the checksum field read as spaces. */
function checksum(block: Uint8Array): number {
  const [start, width] = field.checksum;
  return block.reduce((sum, byte, at) => sum + (at >= start && at < start + width ? 0x20 : byte), 0);
}

function put(block: Uint8Array, name: keyof typeof field, bytes: Uint8Array): void {
  block.set(bytes, field[name][0]);
}

function text(block: Uint8Array, name: keyof typeof field, endsAtZero = true): string {
  const [start, width] = field[name];
  const bytes = block.subarray(start, start + width);
  const end = endsAtZero ? bytes.indexOf(0) : -1;
  try {
    return fromUtf8.decode(end < 0 ? bytes : bytes.subarray(0, end));
  } catch {
    throw invalidBundle(`has a ${name} that is not UTF-8`);
  }
}

function octal(block: Uint8Array, name: keyof typeof field): number {
  const digits = text(block, name).trim();
  if (!/^[0-7]+$/.test(digits)) throw invalidBundle(`has a damaged ${name}`);
  return Number.parseInt(digits, 8);
}

function shown(value: string): string {
  return JSON.stringify(value);
}
