import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import { isRunning, ownIdentity } from "./process-identity.ts";

/**
 * Keeps a second server away from a home that is not meant to be shared: each would take the other's sandboxes for strays.
 * The file of a server that was killed is recognised by its process, which is gone or another one.
 */
export function lockHome(home: string): () => void {
  const file = join(home, "server.lock");
  // Two servers in one process are two servers all the same.
  const own = `${ownIdentity()} ${randomBytes(6).toString("hex")}`;
  // Whole when it appears: what is read from it is never half a name.
  const draft = `${file}.${own.replaceAll(" ", "-")}`;
  writeFileSync(draft, own, { mode: 0o600 });
  try {
    while (!link(draft, file)) {
      const other = read(file);
      if (other === null) continue;
      const [pid] = other.split(" ");
      if (isRunning(processOf(other))) {
        throw new PlatformError(
          "server.locked",
          `another server (process ${pid}) uses ${home}; stop it, or choose another home, or share a Redis store`,
        );
      }
      putAside(file, other, `${draft}.old`);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  return () => {
    if (read(file) === own) rmSync(file, { force: true });
  };
}

/** Takes a dead server's file away; one that a living server has put there meanwhile goes back. */
function putAside(file: string, dead: string, aside: string): void {
  try {
    renameSync(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  if (read(aside) !== dead) link(aside, file);
  rmSync(aside, { force: true });
}

/** False if the file is there already. */
function link(from: string, file: string): boolean {
  try {
    linkSync(from, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function processOf(content: string): string {
  return content.slice(0, content.lastIndexOf(" "));
}

function read(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
