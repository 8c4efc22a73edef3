import { open, rm } from "node:fs/promises";
import { PlatformError } from "@aenv/contract";
import { isInitError } from "../../init/error.ts";
import { mount, run } from "./mount.ts";

/** ext4 needs some space for itself. */
const MIN_DISK_MB = 4;

/** Mounts the file system in the file `disk`, which grows up to this size, and creates it if it is not there. */
export async function mountDisk(disk: string, target: string, sizeMb: number): Promise<void> {
  checkSize(sizeMb);
  await createDisk(disk, sizeMb);
  await mount({ type: "ext4", source: disk, target, options: ["loop", "nodev", "noatime"] });
}

export function checkSize(sizeMb: number): void {
  if (!Number.isSafeInteger(sizeMb) || sizeMb < MIN_DISK_MB)
    throw new PlatformError("request.invalid", `the disk limit is ${sizeMb} MB; it must be an integer of at least ${MIN_DISK_MB}`);
}

/** Keeps a disk that exists: the root of a stopped sandbox is mounted again. */
export async function createDisk(disk: string, sizeMb: number, program = "mkfs.ext4"): Promise<void> {
  const file = await open(disk, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EEXIST") return null;
    throw error;
  });
  if (file === null) return;
  await file.truncate(sizeMb * 2 ** 20);
  await file.close();
  try {
    await run(
      program,
      ["-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "nodiscard", disk],
      `a disk of ${sizeMb} MB could not be created`,
    );
  } catch (error) {
    await rm(disk);
    throw isInitError(error, "no_program") ? noProgram(program, sizeMb) : error;
  }
}

function noProgram(program: string, sizeMb: number): PlatformError {
  return new PlatformError(
    "sandbox.unsupported",
    `the disk of a sandbox cannot be limited to ${sizeMb} MB without the program '${program}': install it, on Debian with: apt-get install e2fsprogs; or remove the limit, or use the runtime runsc, which needs no such program`,
  );
}
