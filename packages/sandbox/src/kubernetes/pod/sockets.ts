import { posix } from "node:path";
import type { Fields, PodSpec, Volume } from "./types.ts";

/** Folders of the machine with the sockets of its services, which give their user the whole machine. */
const SOCKET_FOLDERS = ["/run", "/var/run", "/var/lib/kubelet"];

/** The same pod without volumes that hold sockets of the machine, and the paths of these. */
export function withoutSockets(spec: PodSpec): { readonly spec: PodSpec; readonly removed: readonly string[] } {
  const unsafe = (spec.volumes ?? []).filter((volume) => pathOf(volume) !== null && hasSockets(pathOf(volume) as string));
  if (unsafe.length === 0) return { spec, removed: [] };
  const names = new Set(unsafe.map(({ name }) => name));
  const clean = <T extends { readonly volumeMounts?: readonly { readonly name: string }[] }>(container: T): T => ({
    ...container,
    ...(container.volumeMounts !== undefined && { volumeMounts: container.volumeMounts.filter(({ name }) => !names.has(name)) }),
  });
  const { containers, initContainers, volumes = [] } = spec;
  return {
    spec: {
      ...spec,
      volumes: volumes.filter(({ name }) => !names.has(name)),
      containers: containers.map(clean),
      ...(initContainers !== undefined && { initContainers: initContainers.map(clean) }),
    },
    removed: unsafe.map((volume) => pathOf(volume) as string),
  };
}

function pathOf({ hostPath }: Volume): string | null {
  const { path } = (typeof hostPath === "object" && hostPath !== null ? hostPath : {}) as Fields;
  return typeof path === "string" ? path : null;
}

/** Whether the path is in one of the folders, or one of them is in it. */
function hasSockets(path: string): boolean {
  const real = posix.resolve("/", path);
  if (real.endsWith(".sock")) return true;
  const isIn = (inner: string, outer: string) => `${inner}/`.startsWith(outer === "/" ? "/" : `${outer}/`);
  return SOCKET_FOLDERS.some((folder) => isIn(real, folder) || isIn(folder, real));
}
