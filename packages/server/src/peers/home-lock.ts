import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import { isRunning, openProcessTable, type ProcessIdentity } from "@aenv/sandbox";
import { ownIdentity } from "./own-identity.ts";

/**
 * Locks a home that is not meant to be shared: two servers would destroy each other's sandboxes. The lock file names the process, so the
 * file of a server that was killed is recognized as stale.
 */
export function lockHome(home: string): () => void {
  const file = join(home, "server.lock");
  const processes = openProcessTable();
  const { pid, start } = ownIdentity(processes);
  // The random part tells two servers in one process apart.
  const own = `${pid} ${start} ${randomBytes(6).toString("hex")}`;
  // Written as a draft and then linked, so that the lock file is never read half-written.
  const draft = `${file}.${own.replaceAll(" ", "-")}`;
  writeFileSync(draft, own, { mode: 0o600 });
  try {
    while (!link(draft, file)) {
      const other = read(file);
      if (other === null) continue;
      const owner = parseOwner(other);
      if (isRunning(processes, owner)) {
        throw new PlatformError(
          "server.locked",
          `another server (process ${owner.pid}) uses ${home}; stop it, or choose another home, or share a Redis store`,
        );
      }
      removeStale(file, other, `${draft}.old`);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  return () => {
    if (read(file) === own) rmSync(file, { force: true });
  };
}

/** Removes the lock file of a dead server. If a living server has replaced it meanwhile, that file is put back. */
function removeStale(file: string, dead: string, aside: string): void {
  try {
    renameSync(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  if (read(aside) !== dead) link(aside, file);
  rmSync(aside, { force: true });
}

/** False if the file exists already. */
function link(from: string, file: string): boolean {
  try {
    linkSync(from, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Earlier builds wrote the boot id as a word of its own: `<pid> <start> <boot> <random>`. */
function parseOwner(content: string): ProcessIdentity {
  const [pid, ...rest] = content.split(" ");
  return { pid: Number(pid), start: rest.slice(0, -1).join(".") };
}

function read(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
