import { join } from "node:path";
import { parseMountinfo } from "../../host/mountinfo.ts";

/** Where control groups are on this machine. */
export type Hierarchy =
  | { readonly version: 2; readonly mount: string }
  /** One tree per controller, and trees without a controller, in which the runtime creates groups too. */
  | { readonly version: 1; readonly controllers: Readonly<Record<string, string>>; readonly mounts: readonly string[] };

/**
 * From the `mountinfo` of a process; null if no control groups are mounted. A machine with trees of both versions is one of version 1:
 * a controller is in one tree only, and there in that of version 1.
 */
export function parseHierarchy(mountinfo: string): Hierarchy | null {
  const controllers: Record<string, string> = {};
  const mounts: string[] = [];
  let unified: string | null = null;
  for (const { target, type, options } of parseMountinfo(mountinfo)) {
    if (type !== "cgroup" && type !== "cgroup2") continue;
    mounts.push(target);
    if (type === "cgroup2") unified ??= target;
    // The other options, such as `rw` and `name=systemd`, are no files of a group, and nobody asks for them.
    else for (const option of options) controllers[option] ??= target;
  }
  if (unified !== null && mounts.every((mount) => mount === unified)) return { version: 2, mount: unified };
  return mounts.length === 0 ? null : { version: 1, controllers, mounts: [...new Set(mounts)] };
}

/** The controllers that limit, count and freeze. A new group of others, such as cpuset, accepts no process before it is configured. */
const USED = ["memory", "cpu", "cpuacct", "pids", "freezer"];

/** All folders that a group can have: the runtime creates one in each tree. */
export function foldersOf(hierarchy: Hierarchy, path: string): readonly string[] {
  const mounts = hierarchy.version === 2 ? [hierarchy.mount] : hierarchy.mounts;
  return mounts.map((mount) => join(mount, path));
}

/** The folders of a group in the trees of the controllers that are used. */
export function usedFoldersOf(hierarchy: Hierarchy, path: string): readonly string[] {
  if (hierarchy.version === 2) return foldersOf(hierarchy, path);
  const mounts = new Set(USED.flatMap((controller) => hierarchy.controllers[controller] ?? []));
  return [...mounts].map((mount) => join(mount, path));
}
