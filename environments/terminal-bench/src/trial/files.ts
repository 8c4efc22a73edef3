import { posix } from "node:path";
import { fnmatch } from "../python/fnmatch.ts";
import type { SandboxEntry, TrialSandbox } from "./sandbox.ts";

/** More is an error, not a part of the files. */
const MAX_BYTES = 64 * 1024 ** 2;
const MAX_COPIED_BYTES = 4 * 1024 ** 3;

/** A file that was read from a sandbox. */
export interface SandboxFile extends Pick<SandboxEntry, "path" | "modifiedSec"> {
  readonly content: Uint8Array;
}

/** The regular files below a path, or the file itself. Sizes are capped. */
export async function readFiles(sandbox: TrialSandbox, path: string, exclude: readonly string[] = []): Promise<readonly SandboxFile[]> {
  const files: SandboxFile[] = [];
  let total = 0;
  for await (const { path: inner, type, size, modifiedSec, content } of included(sandbox.read(path), exclude)) {
    if (type !== "file") continue;
    total += size;
    if (total > MAX_BYTES) throw new Error(`'${path}' has more than ${MAX_BYTES} bytes`);
    const parts: Uint8Array[] = [];
    for await (const part of content) parts.push(part);
    files.push({ path: inner, modifiedSec, content: Buffer.concat(parts) });
  }
  return files;
}

/**
 * What is written to another sandbox of a directory, or of a file with this name. As in the reference, it has no special bits, nobody but root
 * may write to it, and links that lead out of the directory are left out. Of more than 4 GiB it is only a part, and `onTooLarge` is called.
 */
export async function* copiesOf(
  entries: AsyncIterable<SandboxEntry>,
  name: string,
  exclude: readonly string[],
  onTooLarge: () => void,
): AsyncGenerator<SandboxEntry> {
  let left = MAX_COPIED_BYTES;
  for await (const { path, type, mode, size, modifiedSec, target, content } of included(entries, exclude)) {
    left -= size;
    if (left < 0) return onTooLarge();
    if (type === "link" && !staysInside(path, target)) continue;
    yield { path: path || name, type, mode: type === "file" ? safeMode(mode) : 0o755, size, modifiedSec, target, content };
  }
}

function safeMode(mode: number): number {
  const own = (mode & 0o755) | 0o600;
  return own & 0o100 ? own : own & ~0o111;
}

function staysInside(path: string, target: string): boolean {
  return !target.startsWith("/") && !/^\.\.(?:\/|$)/.test(posix.join(posix.dirname(path), target));
}

/** Without what patterns of tar exclude. An excluded folder excludes what is in it. */
async function* included(entries: AsyncIterable<SandboxEntry>, exclude: readonly string[]): AsyncGenerator<SandboxEntry> {
  for await (const entry of entries) if (!isExcluded(entry.path, exclude)) yield entry;
}

function isExcluded(path: string, exclude: readonly string[]): boolean {
  const names = path.split("/");
  return names.some((name, i) => exclude.some((glob) => fnmatch(names.slice(0, i + 1).join("/"), glob) || fnmatch(name, glob)));
}
