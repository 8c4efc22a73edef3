import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Hierarchy } from "./hierarchy.ts";

/** Shorter than the time for which a move makes the next one fast. */
const MOVE_AGAIN_MS = 5;

let waiting: Promise<void> | undefined;
let expecting = 0;
let moving: NodeJS.Timeout | undefined;

/**
 * Call it when a process is about to be moved to another control group. The kernel lets a move wait until all processors have noticed it, about ten
 * milliseconds, unless there was another one just before. So this process is moved, to where it is already, while something else is done. Never rejects.
 */
export function expectMove(hierarchy: Hierarchy): Promise<void> {
  const file = ownFile(hierarchy);
  if (file === null) return Promise.resolve();
  waiting ??= writeFile(file, String(process.pid))
    // Another group may have become the own one, or the files may not be writable: then the move itself waits.
    .catch(() => undefined)
    .finally(() => {
      waiting = undefined;
    });
  return waiting;
}

/** The same until it is disposed of, for a program that moves processes at several moments: runsc does, with control groups of version 1. */
export function expectMoves(hierarchy: Hierarchy): Disposable {
  void expectMove(hierarchy);
  expecting++;
  moving ??= setInterval(() => void expectMove(hierarchy), MOVE_AGAIN_MS);
  return {
    [Symbol.dispose]: () => {
      if (--expecting > 0) return;
      clearInterval(moving);
      moving = undefined;
    },
  };
}

/** The list of processes of the group of this process, in one of the trees; null if it is not below the mounted root of the tree. */
export function ownFile(hierarchy: Hierarchy, table: string = readFileSync("/proc/self/cgroup", "utf8")): string | null {
  const [controller, mount] = hierarchy.version === 2 ? ["", hierarchy.mount] : ["pids", hierarchy.controllers.pids];
  const line = table.split("\n").find((one) => one.split(":")[1]?.split(",").includes(controller));
  const path = line?.split(":").slice(2).join(":");
  if (mount === undefined || path === undefined || path.startsWith("/..")) return null;
  return join(mount, path, "cgroup.procs");
}
