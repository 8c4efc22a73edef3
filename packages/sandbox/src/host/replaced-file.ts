import { randomBytes } from "node:crypto";
import { readFileSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Another process may replace the file as often while it is read. */
const ATTEMPTS = 5;

/**
 * Replaces a small file; readers see the old content or the new one. The file becomes a link to its content: if a rename replaced the content itself,
 * ext4 would first write it to the disk, which takes milliseconds on a busy machine. It survives the end of this process, and not that of the machine.
 */
export function replaceFile(path: string, text: string): void {
  const content = `${path}.${randomBytes(6).toString("hex")}`;
  const link = `${content}.link`;
  writeFileSync(content, text, { mode: 0o600 });
  symlinkSync(basename(content), link);
  const old = targetOf(path);
  renameSync(link, path);
  if (old !== null) rmSync(old, { force: true });
}

/** Null if there is no such file. */
export function readReplacedFile(path: string): string | null {
  for (let attempt = 1; ; attempt++) {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      // Replaced between the look at the link and that at its content, unless there is no link.
      if (attempt === ATTEMPTS || targetOf(path) === null) return null;
    }
  }
}

function targetOf(path: string): string | null {
  try {
    return join(dirname(path), readlinkSync(path));
  } catch {
    return null;
  }
}
