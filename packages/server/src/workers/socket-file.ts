import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

const NAME = /^(\d+)\.sock$/;

/**
 * The file of the socket on which this process serves its workers, in a folder that only its user can open. Files of processes that were
 * killed are removed. Several servers may have the same home, so each has a file of its own.
 */
export async function openSocketFile(home: string, pid = process.pid): Promise<string> {
  const folder = join(home, "workers");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    const owner = Number(NAME.exec(name)?.[1]);
    if (owner === pid || !isRunning(owner)) await rm(join(folder, name), { force: true });
  }
  return join(folder, `${pid}.sock`);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
