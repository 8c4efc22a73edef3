import { randomInt } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Leaves all sandboxes of a server together so little memory, until it is disposed: what happens to them is what happens on a machine
 * that has no more. `run` starts a command in one of them.
 */
export async function limitMachine(run: (command: string) => Promise<unknown>, freeBytes: number): Promise<Disposable> {
  const mark = `600.${randomInt(1e9)}`;
  await run(`sleep ${mark} > /dev/null 2>&1 &`);
  const pid = readdirSync("/proc").find((name) => /^\d+$/.test(name) && textOf(`/proc/${name}/cmdline`) === `sleep\0${mark}\0`);
  const groups = textOf(`/proc/${pid}/cgroup`);
  const folderOf = (mount: string, pattern: RegExp) => join(mount, dirname(pattern.exec(groups)?.[1] ?? "/"));
  const v1 = folderOf("/sys/fs/cgroup/memory", /:memory:(.*)$/m);
  const isV1 = existsSync(join(v1, "memory.limit_in_bytes"));
  const [folder, limit, used] = isV1
    ? [v1, "memory.limit_in_bytes", /^total_rss (\d+)$/m]
    : [folderOf("/sys/fs/cgroup", /^0::(.*)$/m), "memory.max", /^anon (\d+)$/m];
  const file = join(folder, limit);
  const before = textOf(file).trim();
  // Files of the page cache make room.
  writeFileSync(file, String(Number(used.exec(textOf(join(folder, "memory.stat")))?.[1]) + freeBytes));
  return { [Symbol.dispose]: () => writeFileSync(file, before) };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
