import { createHash } from "node:crypto";
import { accessSync, constants, readdirSync, readFileSync } from "node:fs";
import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { setTimeout } from "node:timers/promises";
import { parseMountinfo } from "./mountinfo.ts";

// Control groups (cgroup v2) of Linux. A process cannot leave its group by forking, by starting a session or by changing its
// environment, so the group of a sandbox's program contains all its descendants. No controller is used, so nothing is limited.
// Changes are asynchronous: while a process is moved into its group, the kernel lets all other changes wait for some milliseconds.

/** The control groups of one home's sandboxes, below the group in which this process runs. */
export class ControlGroups {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Null where this process may not create groups, as in most containers. */
  static open(home: string, own: string | null = ownGroup()): ControlGroups | null {
    if (own === null) return null;
    return new ControlGroups(join(own, `aenv-${createHash("sha256").update(home).digest("hex").slice(0, 16)}`));
  }

  /** The folder of a sandbox's group, which may not exist yet. */
  pathOf(id: string): string {
    return join(this.#folder, id);
  }

  /** The groups that exist, with the ids of their sandboxes. */
  list(): { readonly id: string; readonly path: string }[] {
    return groupsIn(this.#folder).map((path) => ({ id: basename(path), path }));
  }
}

/** Creates the group of a sandbox. */
export async function createGroup(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  // Processes of an earlier sandbox with this id.
  await killGroup(path);
}

/** Moves a process into a group. */
export async function joinGroup(path: string, pid: number): Promise<void> {
  await writeFile(join(path, "cgroup.procs"), String(pid));
}

/** Stops all processes of a group, or continues them. Resolves when the kernel has done so. */
export async function setFrozen(path: string, isFrozen: boolean): Promise<void> {
  await writeFile(join(path, "cgroup.freeze"), isFrozen ? "1" : "0");
  const wanted = `frozen ${isFrozen ? 1 : 0}`;
  for (let pauseMs = 1; pauseMs < 1_000; pauseMs *= 2) {
    if ((await readFile(join(path, "cgroup.events"), "utf8")).includes(wanted)) return;
    await setTimeout(pauseMs);
  }
}

/** CPU time of all processes that are or were in the group. */
export async function cpuMsOf(path: string): Promise<number> {
  const usage = /^usage_usec (\d+)$/m.exec(await readFile(join(path, "cpu.stat"), "utf8"))?.[1];
  return Number(usage ?? 0) / 1_000;
}

/** Whether a path can be the group of a sandbox. A record may be damaged, and all processes of the group it names are killed. */
export function isSandboxGroup(path: unknown, id: string): boolean {
  return typeof path === "string" && new RegExp(`/aenv-[0-9a-f]{16}/${id.replaceAll(".", "\\.")}$`).test(path) && !path.includes("/../");
}

/** The processes of a group and of its subgroups; empty if it does not exist. */
export function processesIn(path: string): number[] {
  try {
    // 0 is a process outside of this pid namespace.
    const own = readFileSync(join(path, "cgroup.procs"), "utf8")
      .split("\n")
      .map(Number)
      .filter((pid) => pid > 0);
    return [...own, ...groupsIn(path).flatMap(processesIn)];
  } catch {
    return [];
  }
}

/** Kills all processes of a group at once. No-op on kernels without cgroup.kill: the caller also kills them one by one. */
export async function killGroup(path: string): Promise<void> {
  await writeFile(join(path, "cgroup.kill"), "1").catch(() => undefined);
}

/** Ends all processes of a group, and removes it. */
export async function endGroup(path: string): Promise<void> {
  await killGroup(path);
  await removeGroup(path);
}

/** Removes a group whose processes have ended, and its parent folder if that is empty then. */
export async function removeGroup(path: string): Promise<void> {
  // The kernel removes a process from its group shortly after it has ended.
  for (let pauseMs = 1; !(await removeAll(path)) && pauseMs < 1_000; pauseMs *= 2) await setTimeout(pauseMs);
  await remove(dirname(path));
}

async function removeAll(path: string): Promise<boolean> {
  for (const group of groupsIn(path)) await removeAll(group);
  return remove(path);
}

function remove(path: string): Promise<boolean> {
  return rmdir(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code === "ENOENT",
  );
}

function groupsIn(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(path, name));
  } catch {
    return [];
  }
}

/** The folder of the group of this process, if subgroups can be created and processes moved there; else null. */
function ownGroup(): string | null {
  if (process.platform !== "linux") return null;
  try {
    const folder = groupFolder(readFileSync("/proc/self/mountinfo", "utf8"), readFileSync("/proc/self/cgroup", "utf8"));
    if (folder === null) return null;
    for (const path of [folder, join(folder, "cgroup.procs")]) accessSync(path, constants.W_OK);
    return isThreaded(folder) ? null : folder;
  } catch {
    return null;
  }
}

/** Threaded groups do not accept processes. The root group has no type. */
function isThreaded(folder: string): boolean {
  try {
    return readFileSync(join(folder, "cgroup.type"), "utf8").trim() !== "domain";
  } catch {
    return false;
  }
}

/** The folder of a process's group, from its `mountinfo` and `cgroup` in /proc; null if it is not in a mounted cgroup v2. */
export function groupFolder(mountinfo: string, cgroup: string): string | null {
  const path = /^0::(\/.*)$/m.exec(cgroup)?.[1];
  if (path === undefined) return null;
  for (const { root, target, type } of parseMountinfo(mountinfo)) {
    const below = relative(root, path);
    if (type === "cgroup2" && !below.startsWith("..")) return join(target, below);
  }
  return null;
}
