import { execFile } from "node:child_process";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import { PlatformError } from "@aenv/contract";

/** What dynamically linked programs need to start. */
export interface Libraries {
  /** The dynamic loader, at the path that the program names; null for a static program and for none. */
  readonly loader: string | null;
  /** Path of each shared library by the name under which the loader searches it. */
  readonly paths: ReadonlyMap<string, string>;
}

const PROGRAM_HEADERS_AT = 32;
const INTERPRETER = 3;
const LIST_TIMEOUT_MS = 20_000;

/** The shared libraries of programs of this machine with the same loader, as it finds them. */
export async function librariesOf(...programs: readonly string[]): Promise<Libraries> {
  const [first] = programs;
  const loader = first === undefined ? null : await loaderOf(first);
  if (loader === null) return { loader, paths: new Map() };
  // The loaders of glibc and of musl both have this option, for one program, and print the same format.
  const each = programs.length === 1 ? [loader, "--list", ...programs] : ["/bin/sh", "-ec", EACH, loader, ...programs];
  const { stdout } = await promisify(execFile)(each[0] as string, each.slice(1), { timeout: LIST_TIMEOUT_MS });
  return { loader, paths: parseList(stdout, programs.join(", ")) };
}

/** Starting many processes from here takes much longer. */
const EACH = 'for program do "$0" --list "$program"; done';

/** Lines such as `libm.so.6 => /lib/libm.so.6 (0x7f81)`. The loader itself and the kernel's vdso have no arrow. */
export function parseList(text: string, program: string): Map<string, string> {
  const paths = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, name, path] = /^\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?\s*$/.exec(line) ?? [];
    if (name === undefined || path === undefined) continue;
    if (!path.startsWith("/"))
      throw new PlatformError("sandbox.unsupported", `${program} needs the library ${name}, which is not on this machine`);
    paths.set(name, path);
  }
  return paths;
}

/** The interpreter in the ELF header of a 64-bit little-endian program: Linux on x64 and arm64. */
export async function loaderOf(program: string): Promise<string | null> {
  await using file = await open(program);
  const read = async (position: number, length: number) => {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
    return buffer.subarray(0, bytesRead);
  };
  const header = await read(0, 64);
  if (header.length < 64 || header.toString("latin1", 0, 6) !== "\x7fELF\x02\x01")
    throw new PlatformError("sandbox.unsupported", `${program} is not a program for 64-bit Linux`);
  const at = Number(header.readBigUInt64LE(PROGRAM_HEADERS_AT));
  const [size, count] = [header.readUInt16LE(54), header.readUInt16LE(56)];
  const segments = await read(at, size * count);
  for (let start = 0; start + size <= segments.length; start += size) {
    if (segments.readUInt32LE(start) !== INTERPRETER) continue;
    const path = await read(Number(segments.readBigUInt64LE(start + 8)), Number(segments.readBigUInt64LE(start + 32)));
    return path.toString("latin1").replace(/\0+$/, "");
  }
  return null;
}
