import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";

/** A process of a node of the cluster for tests, such as `kubelet` or `kube-apiserver`; null if it does not run. */
export function findNodeProcess(program: string): number | null {
  const first = Number(process.env.AENV_KUBE_NODE_PID || Number.NaN);
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const parents = new Map(processes.map((name) => [Number(name), parentOf(name)]));
  const isOfNode = (pid: number | undefined): boolean => pid !== undefined && pid > 1 && (pid === first || isOfNode(parents.get(pid)));
  const found = processes.find((name) => basename(read(name, "cmdline").split("\0")[0] ?? "") === program && isOfNode(Number(name)));
  return found === undefined ? null : Number(found);
}

/** The name of a process may contain spaces and brackets. */
function parentOf(pid: string): number {
  return Number(/^.*\) \S (\d+)/s.exec(read(pid, "stat"))?.[1] ?? 0);
}

function read(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
