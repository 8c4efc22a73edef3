import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

const NAME = /^(\d+)-[0-9a-f]+\.sock$/;

/**
 * A new file for the socket on which a server serves its workers, in a folder that only its user can open. Files of processes that were
 * killed are removed. Several servers may have the same home, even in one process, so each has a file of its own.
 */
export async function openSocketFile(home: string): Promise<string> {
  const folder = join(home, "workers");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    if (!isRunning(Number(NAME.exec(name)?.[1]))) await rm(join(folder, name), { force: true });
  }
  return join(folder, `${process.pid}-${randomBytes(4).toString("hex")}.sock`);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
