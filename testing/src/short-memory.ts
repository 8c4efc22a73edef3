import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Leaves so little memory, until it is disposed, to all control groups beside that of a process together. What happens to them is what
 * happens on a machine that has no more.
 */
export function limitMemoryAbove(pid: number, freeBytes: number): Disposable {
  const groups = readFileSync(`/proc/${pid}/cgroup`, "utf8");
  const folderOf = (mount: string, pattern: RegExp) => join(mount, dirname(pattern.exec(groups)?.[1] ?? "/none/none"));
  const v1 = folderOf("/sys/fs/cgroup/memory", /:memory:(.*)$/m);
  const [folder, limit, used] = existsSync(join(v1, "memory.limit_in_bytes"))
    ? [v1, "memory.limit_in_bytes", /^total_rss (\d+)$/m]
    : [folderOf("/sys/fs/cgroup", /^0::(.*)$/m), "memory.max", /^anon (\d+)$/m];
  const file = join(folder, limit);
  const before = readFileSync(file, "utf8").trim();
  // Files of the page cache make room.
  const usedBytes = Number(used.exec(readFileSync(join(folder, "memory.stat"), "utf8"))?.[1]);
  writeFileSync(file, String(usedBytes + freeBytes));
  return { [Symbol.dispose]: () => writeFileSync(file, before) };
}
