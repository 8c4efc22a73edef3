import { readdirSync, readFileSync } from "node:fs";

/** Kills everything in the containers of a pod; false if its node is not this machine, or the pod has not started. */
export function killContainers(uid: string): boolean {
  const killed = containersOf(uid);
  for (const pid of killed) endProcess(pid);
  return killed.length > 0;
}

/** The processes in the containers of a pod, if its node is this machine. */
export function containersOf(uid: string): number[] {
  // A part of one, or nothing, would be found in the names of other processes' groups.
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(uid)) throw new Error(`'${uid}' is not the uid of a pod`);
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && textOf(`/proc/${name}/cgroup`).includes(uid));
  // The process that holds the network of the pod is no container of it.
  return pids.filter((pid) => textOf(`/proc/${pid}/comm`).trim() !== "pause").map(Number);
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended with another one.
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
