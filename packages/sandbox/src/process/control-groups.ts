import { createHash } from "node:crypto";
import { accessSync, constants, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { setTimeout } from "node:timers/promises";

// Control groups (cgroup v2) of Linux: a process cannot leave its group by forking, by starting a session or by changing its
// environment, so a group that holds a sandbox's program holds all that comes of it. No controller is used, so nothing is limited.

/** The control groups of one home's sandboxes, below the group in which this process runs. */
export class ControlGroups {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Null where this process may not make groups, as in most containers. */
  static open(home: string, own: string | null = ownGroup()): ControlGroups | null {
    if (own === null) return null;
    return new ControlGroups(join(own, `aenv-${createHash("sha256").update(home).digest("hex").slice(0, 16)}`));
  }

  /** Where a sandbox's group is, or would be. */
  pathOf(id: string): string {
    return join(this.#folder, id);
  }

  /** Makes a group and moves a process into it. The kernel may take some milliseconds, so nothing else waits for it. */
  async enter(path: string, pid: number): Promise<void> {
    mkdirSync(path, { recursive: true });
    // What an earlier sandbox of this id has left there.
    killGroup(path);
    await writeFile(join(path, "cgroup.procs"), String(pid));
  }
}

/** Whether a path can be a group of ours: a record could be damaged, and all processes of the group it names are killed. */
export function isOurGroup(path: unknown, id: string): boolean {
  return typeof path === "string" && new RegExp(`/aenv-[0-9a-f]{16}/${id.replaceAll(".", "\\.")}$`).test(path) && !path.includes("/../");
}

/** The processes of a group and of the groups below it; none if it is gone. */
export function processesIn(path: string): number[] {
  try {
    // 0 stands for a process that this one cannot see.
    const own = readFileSync(join(path, "cgroup.procs"), "utf8")
      .split("\n")
      .map(Number)
      .filter((pid) => pid > 0);
    return [...own, ...groupsIn(path).flatMap(processesIn)];
  } catch {
    return [];
  }
}

/** Kills all processes of a group at once; where the kernel is too old for that, they have to be killed one by one. */
export function killGroup(path: string): void {
  try {
    writeFileSync(join(path, "cgroup.kill"), "1");
  } catch {}
}

/** Removes a group whose processes have ended, and the folder of all groups with the last of them. */
export async function removeGroup(path: string): Promise<void> {
  // The kernel lets go of a process a moment after it has ended.
  for (let pauseMs = 1; !removeAll(path) && pauseMs < 1_000; pauseMs *= 2) await setTimeout(pauseMs);
  remove(dirname(path));
}

function removeAll(path: string): boolean {
  for (const group of groupsIn(path)) removeAll(group);
  return remove(path);
}

function remove(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
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

/** The folder of the group in which this process runs, if groups can be made in it and processes be moved. */
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

/** Groups of threads take no whole processes. The root has no type. */
function isThreaded(folder: string): boolean {
  try {
    return readFileSync(join(folder, "cgroup.type"), "utf8").trim() !== "domain";
  } catch {
    return false;
  }
}

/** Where the group of a process is, from its `mountinfo` and `cgroup` in /proc; null if no cgroup v2 is mounted there. */
export function groupFolder(mountinfo: string, cgroup: string): string | null {
  const path = /^0::(\/.*)$/m.exec(cgroup)?.[1];
  if (path === undefined) return null;
  for (const line of mountinfo.split("\n")) {
    const [mount = "", type = ""] = line.split(" - ");
    const [, , , root, target] = mount.split(" ");
    if (!type.startsWith("cgroup2 ") || root === undefined || target === undefined) continue;
    const below = relative(decodeOctal(root), path);
    if (!below.startsWith("..")) return join(decodeOctal(target), below);
  }
  return null;
}

/** Spaces and the like stand as octal numbers in mountinfo. */
function decodeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}
