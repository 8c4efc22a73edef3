import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";

/**
 * Keeps a second server away from a home that is not meant to be shared: each would take the other's boxes for strays.
 * The file of a server that was killed is recognised by its process, which is gone or another one.
 */
export function lockHome(home: string): () => void {
  const file = join(home, "server.lock");
  const own = `${process.pid} ${startOf(process.pid)}`;
  for (;;) {
    try {
      writeFileSync(file, own, { flag: "wx", mode: 0o600 });
      return () => {
        if (read(file) === own) rmSync(file, { force: true });
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const other = read(file);
    const [pid = "", start = ""] = other.split(" ");
    if (other !== own && Number(pid) > 0 && startOf(Number(pid)) === start && isAlive(Number(pid))) {
      throw new PlatformError(
        "server.locked",
        `another server (process ${pid}) uses ${home}; stop it, or choose another home, or share a Redis store`,
      );
    }
    rmSync(file, { force: true });
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** When the process began, where the system tells: a number that is used again must not be taken for the same process. */
function startOf(pid: number): string {
  const stat = read(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}
