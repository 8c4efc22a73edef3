import { randomInt } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { limitMemoryAbove } from "@aenv/testing";

/** Leaves the sandboxes of a server so little memory together. `run` starts a command in one of them. */
export async function limitMachine(run: (command: string) => Promise<unknown>, freeBytes: number): Promise<Disposable> {
  const mark = `600.${randomInt(1e9)}`;
  await run(`sleep ${mark} > /dev/null 2>&1 &`);
  const pid = readdirSync("/proc").find((name) => /^\d+$/.test(name) && commandOf(name) === `sleep\0${mark}\0`);
  return limitMemoryAbove(Number(pid), freeBytes);
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return ""; // It has ended meanwhile.
  }
}
