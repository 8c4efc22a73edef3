import { posix } from "node:path";
import { PlatformError } from "@aenv/contract";
import type { MemoryFolder } from "../engine/engine.ts";

/** The `mounts` of an OCI `config.json`. */
export interface OciMount {
  readonly destination: string;
  readonly type: string;
  readonly source: string;
  readonly options: readonly string[];
}

/** A folder or file of this machine at a path of the sandbox, or a folder in memory. */
export type SandboxMount =
  | { readonly kind: "bind"; readonly source: string; readonly target: string; readonly isReadOnly: boolean }
  | ({ readonly kind: "tmpfs"; readonly target: string } & Omit<MemoryFolder, "path">);

/** Size of /dev/shm. Docker has the same. */
export const DEFAULT_SHM_MB = 64;

/** Mode of a folder in memory: for all users, as /tmp. Docker has the same. */
const TMPFS_MODE = 0o1777;

/** The options of a folder in memory, as the kernel and Docker read them. */
export function tmpfsOptions({ path, sizeMb, mode = TMPFS_MODE, isExecutable = false }: MemoryFolder): readonly string[] {
  if (!Number.isSafeInteger(sizeMb) || sizeMb <= 0) throw invalid(`the size of ${path} is ${sizeMb} MB; it must be a positive integer`);
  return ["nosuid", isExecutable ? "exec" : "noexec", "nodev", `mode=${mode.toString(8)}`, `size=${sizeMb}m`];
}

/** Where the init is in every sandbox. */
export const INIT_PATH = "/.aenv/init";

/** Paths that the runtime mounts itself, and whose content the isolation depends on. */
const RESERVED = ["/proc", "/sys", "/dev", "/.aenv"];

/** Files of /proc and /sys that describe the machine instead of the sandbox. */
export const MASKED = [
  "/proc/acpi",
  "/proc/asound",
  "/proc/interrupts",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/sys/devices/virtual/powercap",
  "/sys/firmware",
  "/sys/fs/bpf",
  "/sys/fs/pstore",
  "/sys/kernel/debug",
  "/sys/kernel/security",
  "/sys/kernel/tracing",
];

/** Files of /proc that change settings of the machine. */
export const READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/** The file systems that Linux programs expect. `sys`: a new one, an empty folder, or nothing because the root has one. */
export function systemMounts({
  cgroup,
  sys,
  shmMb,
}: {
  readonly cgroup: boolean;
  readonly sys: "new" | "empty" | "given";
  readonly shmMb: number;
}): readonly OciMount[] {
  if (!Number.isSafeInteger(shmMb) || shmMb <= 0) throw invalid(`the size of /dev/shm is ${shmMb} MB; it must be a positive integer`);
  const inert = ["nosuid", "noexec", "nodev"];
  return [
    { destination: "/proc", type: "proc", source: "proc", options: inert },
    { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "strictatime", "mode=755", "size=64k"] },
    {
      destination: "/dev/pts",
      type: "devpts",
      source: "devpts",
      options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
    },
    { destination: "/dev/shm", type: "tmpfs", source: "shm", options: [...inert, "mode=1777", `size=${shmMb}m`] },
    { destination: "/dev/mqueue", type: "mqueue", source: "mqueue", options: inert },
    ...(sys === "new" ? [{ destination: "/sys", type: "sysfs", source: "sysfs", options: [...inert, "ro"] }] : []),
    ...(sys === "empty" ? [{ destination: "/sys", type: "tmpfs", source: "tmpfs", options: [...inert, "ro", "size=4k"] }] : []),
    ...(cgroup ? [{ destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup", options: [...inert, "ro"] }] : []),
  ];
}

export function initMount(source: string): OciMount {
  return { destination: INIT_PATH, type: "bind", source, options: ["bind", "ro", "nosuid", "nodev"] };
}

/** Throws `request.invalid` for a path at which nothing may be mounted. */
export function sandboxMount(mount: SandboxMount): OciMount {
  const { target } = mount;
  if (!isPlain(target) || target === "/")
    throw invalid(`the mount target '${target}' is not an absolute path below / without '.' and '..'`);
  const reserved = RESERVED.find((path) => target === path || target.startsWith(`${path}/`));
  if (reserved !== undefined)
    throw invalid(`nothing can be mounted at '${target}': ${reserved} belongs to the platform; choose another path`);
  if (mount.kind === "tmpfs")
    return { destination: target, type: "tmpfs", source: "tmpfs", options: tmpfsOptions({ ...mount, path: target }) };
  if (!isPlain(mount.source))
    throw invalid(`the source '${mount.source}' of the mount at '${target}' is not an absolute path without '.' and '..'`);
  return {
    destination: target,
    type: "bind",
    source: mount.source,
    options: ["rbind", mount.isReadOnly ? "ro" : "rw", "nosuid", "nodev", "rprivate"],
  };
}

function isPlain(path: string): boolean {
  return path.startsWith("/") && !path.includes("\0") && posix.normalize(path) === path && (path === "/" || !path.endsWith("/"));
}

function invalid(message: string): PlatformError {
  return new PlatformError("request.invalid", message);
}
