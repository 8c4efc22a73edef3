import { PlatformError } from "@aenv/contract";

/** One file of an archive. Folders exist only as parts of paths. */
export interface TarEntry {
  /** Relative, with `/` between its parts. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

// A small part of the ustar format (POSIX.1-1988): regular files only, and nothing in a header that could differ
// between two machines. Offsets and widths of the fields that we use:
const BLOCK = 512;
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

const utf8 = new TextEncoder();
const fromUtf8 = new TextDecoder("utf-8", { fatal: true });

/** The same entries, in any order, always give the same bytes. */
export function writeTar(entries: readonly TarEntry[]): Uint8Array {
  const sorted = entries.map((entry) => ({ ...entry, key: Buffer.from(entry.path) })).sort((a, b) => Buffer.compare(a.key, b.key));
  const blocks: Uint8Array[] = [];
  sorted.forEach((entry, index) => {
    if (sorted[index - 1]?.path === entry.path) throw wrong(`holds '${entry.path}' twice`);
    blocks.push(header(entry), entry.bytes, new Uint8Array(padding(entry.bytes.length)));
  });
  blocks.push(new Uint8Array(2 * BLOCK));
  return Buffer.concat(blocks);
}

/** The files of an archive; damaged ones, and ones with links or paths that lead outside, are refused. */
export function readTar(bytes: Uint8Array): TarEntry[] {
  const entries = new Map<string, TarEntry>();
  let at = 0;
  for (;;) {
    const block = bytes.subarray(at, at + BLOCK);
    if (block.length < BLOCK) throw wrong("ends too early");
    at += BLOCK;
    if (block.every((byte) => byte === 0)) break;
    const { path, size } = readHeader(block);
    if (at + size > bytes.length) throw wrong(`ends within '${path}'`);
    if (entries.has(path)) throw wrong(`holds '${path}' twice`);
    entries.set(path, { path, bytes: bytes.slice(at, at + size) });
    at += size + padding(size);
  }
  return [...entries.values()];
}

function header({ path, bytes }: TarEntry): Uint8Array {
  requireSafe(path);
  if (bytes.length > MAX_SIZE) throw wrong(`cannot hold '${path}': it is larger than 8 GiB`);
  const [prefix, name] = splitPath(path);
  const block = new Uint8Array(BLOCK);
  put(block, "name", name);
  put(block, "mode", utf8.encode("0000644\0"));
  put(block, "uid", utf8.encode("0000000\0"));
  put(block, "gid", utf8.encode("0000000\0"));
  put(block, "size", utf8.encode(`${bytes.length.toString(8).padStart(11, "0")}\0`));
  put(block, "mtime", utf8.encode("00000000000\0"));
  put(block, "type", utf8.encode("0"));
  put(block, "magic", utf8.encode(MAGIC));
  put(block, "prefix", prefix);
  put(block, "checksum", utf8.encode(`${checksum(block).toString(8).padStart(6, "0")}\0 `));
  return block;
}

function readHeader(block: Uint8Array): { path: string; size: number } {
  if (text(block, "magic", false) !== MAGIC) throw wrong("is not a ustar archive");
  if (octal(block, "checksum") !== checksum(block)) throw wrong("has a damaged header");
  const prefix = text(block, "prefix");
  const path = prefix === "" ? text(block, "name") : `${prefix}/${text(block, "name")}`;
  const type = text(block, "type");
  if (type === "1" || type === "2") throw wrong(`holds a link, '${path}'`);
  if (type !== "0" && type !== "") throw wrong(`holds '${path}', which is not a plain file (type ${type})`);
  requireSafe(path);
  return { path, size: octal(block, "size") };
}

/** A path that stays inside the folder it is unpacked into, on every system. */
function requireSafe(path: string): void {
  const isSafe = path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
  if (!isSafe || /[\\\0]|^[A-Za-z]:/.test(path))
    throw wrong(`may not hold the path '${path}': it must be relative, without '.', '..' or '\\'`);
}

/** Up to 100 bytes stand in `name`; more only if a `/` lets the front move into `prefix`. */
function splitPath(path: string): [prefix: Uint8Array, name: Uint8Array] {
  const whole = utf8.encode(path);
  if (whole.length <= field.name[1]) return [new Uint8Array(0), whole];
  const slash = whole.subarray(0, field.prefix[1] + 1).lastIndexOf(0x2f);
  const [prefix, name] = [whole.subarray(0, Math.max(0, slash)), whole.subarray(slash + 1)];
  if (slash < 1 || name.length > field.name[1]) throw wrong(`cannot hold the path '${path}': it is too long`);
  return [prefix, name];
}

/** The sum of all bytes, with the checksum's own field taken as spaces. */
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
    throw wrong(`has a ${name} that is not UTF-8`);
  }
}

function octal(block: Uint8Array, name: keyof typeof field): number {
  const digits = text(block, name).trim();
  if (!/^[0-7]+$/.test(digits)) throw wrong(`has a damaged ${name}`);
  return Number.parseInt(digits, 8);
}

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

function wrong(what: string): PlatformError {
  return new PlatformError("environment.invalid", `the bundle ${what}`);
}
