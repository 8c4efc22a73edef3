import { PlatformError } from "./errors.ts";
import { isTarEnd, latin1, TAR_BLOCK, type TarField, tarBlock, tarChecksum, tarField, tarPadding, USTAR } from "./tar-format.ts";
import { TarInput } from "./tar-input.ts";

/** The header of a file in an archive. */
export interface TarHeader {
  /** Relative, with `/` as the separator, and inside the target folder. */
  readonly path: string;
  readonly size: number;
  /** False by default. */
  readonly isExecutable?: boolean;
}

// A small part of the ustar format: regular files only, and nothing in a header that could differ between two machines.
const MAX_SIZE = 8 ** 11 - 1;
const MAX_NAME = 100;
const MAX_PREFIX = 155;

const toUtf8 = new TextEncoder();
const fromUtf8 = new TextDecoder("utf-8", { fatal: true });

/** The header of a plain file in a bundle's archive. */
export function writeTarHeader({ path, size, isExecutable = false }: TarHeader): Uint8Array {
  assertInside(path);
  if (size > MAX_SIZE) throw invalidBundle(`cannot contain ${shown(path)}: it is larger than 8 GiB`);
  const [prefix, name] = splitPath(path);
  const mode = isExecutable ? 0o755 : 0o644;
  return tarBlock({ name: latin1(name), mode, uid: 0, gid: 0, size, mtime: 0, type: "0", prefix: latin1(prefix) });
}

/**
 * Reads the headers that `writeTarHeader` writes and no others. Links, devices, folders as entries and every extension of the
 * format (pax, GNU) are refused: a second encoding of a path or size could bypass the checks.
 */
function readTarHeader(block: Uint8Array): TarHeader {
  if (text(block, "magic", false) !== USTAR) throw invalidBundle("is not a ustar archive");
  if (octal(block, "checksum") !== tarChecksum(block)) throw invalidBundle("has a damaged header");
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

/** One plain file of an archive. Its body is read before the next file is requested; unread bytes are skipped. */
export interface TarFile {
  readonly path: string;
  readonly size: number;
  readonly isExecutable: boolean;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Reads an archive as its bytes arrive. Only archives as `aenv build` writes them are accepted. */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarFile, void, undefined> {
  const input = new TarInput(source, invalidBundle);
  try {
    for (;;) {
      const block = await input.takeAll(TAR_BLOCK);
      if (isTarEnd(block)) break;
      const { path, size, isExecutable = false } = readTarHeader(block);
      const left = { size };
      yield { path, size, isExecutable, body: input.content(left, path) };
      await input.skip(left.size + tarPadding(size), path);
    }
    if (!isTarEnd(await input.takeAll(TAR_BLOCK))) throw invalidBundle("does not end as an archive ends");
    for (let rest = await input.next(Infinity); rest !== null; rest = await input.next(Infinity)) {
      if (!isTarEnd(rest)) throw invalidBundle("carries something after its end");
    }
  } finally {
    await input.close();
  }
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
  if (whole.length <= MAX_NAME) return [new Uint8Array(0), whole];
  const slash = whole.subarray(0, MAX_PREFIX + 1).lastIndexOf(0x2f);
  const [prefix, name] = [whole.subarray(0, Math.max(0, slash)), whole.subarray(slash + 1)];
  if (slash < 1 || name.length > MAX_NAME) throw invalidBundle(`cannot contain the path ${shown(path)}: it is too long`);
  return [prefix, name];
}

function text(block: Uint8Array, name: TarField, endsAtZero = true): string {
  const bytes = tarField(block, name);
  const end = endsAtZero ? bytes.indexOf(0) : -1;
  try {
    return fromUtf8.decode(end < 0 ? bytes : bytes.subarray(0, end));
  } catch {
    throw invalidBundle(`has a ${name} that is not UTF-8`);
  }
}

function octal(block: Uint8Array, name: TarField): number {
  const digits = text(block, name).trim();
  if (!/^[0-7]+$/.test(digits)) throw invalidBundle(`has a damaged ${name}`);
  return Number.parseInt(digits, 8);
}

function shown(value: string): string {
  return JSON.stringify(value);
}
