import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { runscPath } from "./components.ts";

/** A real dockerd for one test file: its own socket, folders and control group; ended with the scope or with this process. */
export interface DockerDaemon extends AsyncDisposable {
  readonly socket: string;
  /** Stops the daemon with all its containers and starts it again on the same files, which takes seconds. */
  restart(): Promise<void>;
}

const START_TIMEOUT_MS = 60_000;

export interface DockerOptions {
  /** A network namespace, in which the daemon may change the network as it usually does. */
  readonly namespace?: string;
  /** Containers have a network by default, as with a daemon without settings. Needs a namespace. */
  readonly hasBridge?: boolean;
  /** Whether the daemon has firewall rules, by default in a namespace only. */
  readonly iptables?: boolean;
}

/** Needs the component `docker`. Containers can use runsc if this machine has it. */
export async function startDocker({
  namespace,
  hasBridge = false,
  iptables = namespace !== undefined,
}: DockerOptions = {}): Promise<DockerDaemon> {
  const runsc = runscPath();
  // A short path: containerd has sockets below it.
  const folder = mkdtempSync(join(tmpdir(), "aenv-docker-"));
  const socket = join(folder, "socket");
  const settings = {
    hosts: [`unix://${socket}`],
    "data-root": join(folder, "data"),
    "exec-root": join(folder, "exec"),
    pidfile: join(folder, "pid"),
    // Beside the tests, other daemons may run: nothing of the machine's network is changed.
    ...(!hasBridge && { bridge: "none" }),
    iptables,
    "ip-forward": namespace !== undefined,
    "cgroup-parent": `/${basename(folder)}`,
    "shutdown-timeout": 1,
    ...(runsc !== null && { runtimes: { runsc: { path: runsc, runtimeArgs: ["--platform=systrap", "--host-uds=all"] } } }),
  };
  writeFileSync(join(folder, "daemon.json"), JSON.stringify(settings));
  let running: Running | null = null;
  const stop = async () => {
    await running?.end();
    running = null;
  };
  const start = async () => {
    running = run(folder, namespace);
    await Promise.race([untilAnswering(socket), running.failed]);
  };
  const dispose = async () => {
    await stop();
    spawnSync("sh", ["-c", CLEAN_UP, "clean-up", folder]);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await start();
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    socket,
    restart: async () => {
      await stop();
      await start();
    },
    [Symbol.asyncDispose]: dispose,
  };
}

/** The daemon leaves a network namespace mounted, and control groups. */
const CLEAN_UP = [
  'grep -o " $1/[^ ]*" /proc/mounts | sort -r | xargs -r umount -l',
  // BuildKit has a group of its own in that of the containers.
  'for group in /sys/fs/cgroup/"$(basename "$1")" /sys/fs/cgroup/*/"$(basename "$1")"; do rmdir "$group"/buildkit "$group" 2>/dev/null; done',
  "true",
].join("; ");

const REMOVE_ALL = 'docker -H "unix://$1/socket" ps --all --quiet | xargs -r docker -H "unix://$1/socket" rm --force --volumes >/dev/null';

interface Running {
  readonly failed: Promise<never>;
  end(): Promise<void>;
}

function run(folder: string, namespace: string | undefined): Running {
  const log = join(folder, "log");
  const enter = namespace === undefined ? "" : `nsenter --net=/run/netns/${namespace}`;
  const script = `exec ${enter} dockerd --config-file "$1/daemon.json" >>"$1/log" 2>&1`;
  const daemon = spawn("sh", ["-c", script, "sh", folder], { stdio: "ignore" });
  const gone = once(daemon, "exit");
  const guard = watchOver(daemon, folder);
  const failed = gone.then(() => {
    throw new Error(`dockerd did not start:\n${readFileSync(log, "utf8").split("\n").slice(-20).join("\n")}`);
  });
  failed.catch(() => undefined);
  return {
    failed,
    end: async () => {
      spawnSync("sh", ["-c", REMOVE_ALL, "remove", folder], { timeout: 60_000 });
      daemon.kill("SIGTERM");
      await gone.finally(() => guard.kill("SIGKILL"));
    },
  };
}

/** Ends the daemon and deletes its folder if this process is killed: then the pipe between them closes. */
function watchOver(daemon: ChildProcess, folder: string): ChildProcess {
  const wait = 'while kill -0 "$2" 2>/dev/null; do sleep 0.1; done';
  const script = `read -r _; ${REMOVE_ALL}; kill "$2"; ${wait}; ${CLEAN_UP}; rm -rf "$1"`;
  const guard = spawn("sh", ["-c", script, "guard", folder, String(daemon.pid)], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  guard.unref();
  return guard;
}

export async function untilAnswering(socket: string): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    try {
      return await ping(socket);
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await setTimeout(20);
    }
  }
}

function ping(socketPath: string): Promise<void> {
  return new Promise((resolve, reject) => {
    get({ socketPath, path: "/_ping", agent: false }, (response) => {
      response.resume();
      resolve();
    }).on("error", reject);
  });
}
