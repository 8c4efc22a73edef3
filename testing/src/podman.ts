import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { untilAnswering } from "./docker.ts";

/** A real service of Podman for one test file: its own socket, folders and network; ended with the scope or with this process. */
export interface PodmanService extends AsyncDisposable {
  readonly socket: string;
}

export interface PodmanOptions {
  /** The network namespace of the service and its containers; by default one of its own. */
  readonly namespace?: string;
}

/** Needs the component `podman`. */
export async function startPodman({ namespace }: PodmanOptions = {}): Promise<PodmanService> {
  const folder = mkdtempSync(join(tmpdir(), "aenv-podman-"));
  const socket = join(folder, "socket");
  // With a network namespace of its own, nothing of the machine's network is changed.
  const enter = namespace === undefined ? "unshare --net" : `nsenter --net=/run/netns/${namespace}`;
  const script = `exec ${enter} ${PODMAN} --log-level=warn system service --time 0 "unix://$1/socket" >>"$1/log" 2>&1`;
  // There: conmon writes files into its working directory.
  const service = spawn("sh", ["-c", script, "sh", folder], { stdio: "ignore", cwd: folder });
  const gone = once(service, "exit");
  const guard = watchOver(service, folder);
  const failed = gone.then(() => {
    throw new Error(`podman did not start:\n${readFileSync(join(folder, "log"), "utf8").split("\n").slice(-20).join("\n")}`);
  });
  failed.catch(() => undefined);
  const dispose = async () => {
    spawnSync("sh", ["-c", REMOVE_ALL, "remove", folder], { timeout: 60_000 });
    service.kill("SIGTERM");
    await gone.finally(() => guard.kill("SIGKILL"));
    spawnSync("sh", ["-c", CLEAN_UP, "clean-up", folder]);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await Promise.race([untilAnswering(socket), failed]);
  } catch (error) {
    await dispose();
    throw error;
  }
  return { socket, [Symbol.asyncDispose]: dispose };
}

/** runc: crun refuses to start on machines with control groups of both versions. */
const PODMAN = [
  'podman --root "$1/data" --runroot "$1/run" --tmpdir "$1/tmp" --network-config-dir "$1/networks"',
  "--storage-driver overlay --cgroup-manager cgroupfs --events-backend file --runtime runc",
].join(" ");

const REMOVE_ALL = `${PODMAN} rm --all --force --volumes --time 0 >/dev/null 2>&1`;

const CLEAN_UP = [
  'grep -o " $1/[^ ]*" /proc/mounts | sort -r | xargs -r umount -l',
  // In use if another Podman runs here.
  "for parent in /sys/fs/cgroup/libpod_parent /sys/fs/cgroup/*/libpod_parent; do rmdir $parent/conmon $parent 2>/dev/null; done",
  "true",
].join("; ");

/** Ends the service and its containers and deletes its folder if this process is killed: then the pipe between them closes. */
function watchOver(service: ChildProcess, folder: string): ChildProcess {
  const script = `read -r _; ${REMOVE_ALL}; kill "$2"; ${CLEAN_UP}; rm -rf "$1"`;
  const guard = spawn("sh", ["-c", script, "guard", folder, String(service.pid)], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  guard.unref();
  return guard;
}
