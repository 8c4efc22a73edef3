import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { formatIpv4Network, messageOf } from "@aenv/contract";
import { DockerApi } from "../docker/api.ts";
import { readDaemon, runtimeFor } from "../docker/daemon.ts";
import { filterProblem } from "../docker/packet-filter.ts";
import type { SandboxRuntime } from "../engine/engine.ts";
import { LayerStore } from "../images/layers.ts";
import { findSubnet } from "../network/home.ts";
import { ControlGroup, findHierarchy } from "./cgroups/group.ts";
import { findMapProblem, newUserMapping } from "./overlay/mapped.ts";
import { mountRoot, removeRoot, rootPath } from "./overlay/root.ts";
import { openRuntime } from "./runtime/open.ts";
import { removeGroups, tryRuntime } from "./runtime/trial.ts";

/** What a probe found. A failed one says why, in a sentence without its subject: "no program 'runc'". */
export type ProbeResult = { readonly ok: true; readonly detail: string } | { readonly ok: false; readonly reason: string };

const TIMEOUT_MS = 20_000;
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Runs a program to its end. The detail is its first line of output. */
export async function probeProgram(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = { PATH: SYSTEM_PATH },
): Promise<ProbeResult> {
  try {
    const { stdout, stderr } = await promisify(execFile)(program, args, { timeout: TIMEOUT_MS, env: { ...env, LC_ALL: "C" } });
    return { ok: true, detail: firstLine(stdout) || firstLine(stderr) };
  } catch (error) {
    const { code, killed, stderr = "" } = error as { code?: unknown; killed?: boolean; stderr?: string };
    if (code === "ENOENT") return { ok: false, reason: `no program '${program}'` };
    if (killed) return { ok: false, reason: `'${program}' did not end within ${TIMEOUT_MS / 1_000} seconds` };
    return { ok: false, reason: `'${[program, ...args].join(" ")}' failed: ${firstLine(stderr) || messageOf(error)}` };
  }
}

/** Mounts an overlay below the folder, as oci sandboxes of a home do. */
export async function probeOverlay(home: string): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  return inNewFolder(home, async (folder) => {
    const root = { folder: join(folder, "root"), layers: [], storage: { kind: "folder" } } as const;
    try {
      await mountRoot(root, new LayerStore(join(folder, "store")));
      await writeFile(join(rootPath(root), "file"), "");
    } finally {
      await removeRoot(root);
    }
    return `mounted below ${existing(home)}`;
  });
}

/** Creates a control group with each limit, and removes it. */
export async function probeControlGroups(): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  return attempt(async () => {
    const hierarchy = await findHierarchy();
    const group = new ControlGroup(hierarchy, newGroupPath());
    try {
      await group.create({ memoryBytes: 64 * 2 ** 20, cpuQuotaUs: 50_000, pids: 64 });
    } finally {
      await removeGroups(group);
    }
    return `version ${hierarchy.version}, with limits of memory, cpu and processes`;
  });
}

/** Where an engine keeps its files, and whose users its sandboxes with runc have. */
export interface OciPlace {
  readonly home: string;
  /** The folder of images; below home by default. */
  readonly store?: string | undefined;
  readonly users: "own" | "machine";
}

/** Whether sandboxes with runc have users of their own, as the file systems of the home and of the images decide. */
export async function probeOwnUsers({ home, store = home, users }: OciPlace): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  if (users === "machine") return { ok: false, reason: "sandboxUsers is 'machine': root of a sandbox is root of this machine" };
  return inNewFolder(home, (folder) =>
    inNewFolderOf(store, async (layers) => {
      const problem = await findMapProblem(folder, layers);
      if (problem !== null) throw new Error(`root of a sandbox is root of this machine: ${problem}`);
      return "root of a sandbox is no user of this machine";
    }),
  );
}

/** Starts the init in an empty sandbox with the runtime, with the users that sandboxes have here, and removes it. */
export async function probeSandbox(name: SandboxRuntime, place: OciPlace, program?: string): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  const isMapped = name === "runc" && (await probeOwnUsers(place)).ok;
  // Root of such a sandbox cannot enter a home that only its owner can enter.
  return inNewFolder(isMapped ? tmpdir() : place.home, async (folder) => {
    const runtime = await openRuntime(name, { root: join(folder, "runtime"), ...(program !== undefined && { program }) });
    const tookMs = await tryRuntime(runtime, { folder, ...(isMapped && { userMapping: newUserMapping() }) });
    const own = basename(runtime.program);
    // With users of the machine, another program than crun is used, unless it is the chosen one.
    const used = name === "runc" && !isMapped && program === undefined ? "runc" : own;
    return `${used} started a sandbox in ${Math.round(tookMs)} ms${used === "runc" ? "; crun is faster, if it works here" : ""}`;
  });
}

/** Asks the Docker or Podman engine behind the socket whether it can run sandboxes with the runtime. */
export async function probeDocker(socket: string, runtime: SandboxRuntime): Promise<ProbeResult> {
  const api = new DockerApi(socket);
  // An engine that does not answer: the requests end with the connections.
  const limit = setTimeout(() => void api.close(), TIMEOUT_MS);
  try {
    return await attempt(async () => {
      const [daemon, { Version: version }] = [await readDaemon(api), await api.call("GET", "/version")];
      // With runc, servers use the runtime that is the engine's default.
      const { runtime: found } = runtimeFor(runtime === "runc" ? undefined : runtime, daemon);
      return `${daemon.isPodman ? "Podman" : "Docker"} ${version} at ${socket}, with ${found}`;
    });
  } finally {
    clearTimeout(limit);
    await api.close();
  }
}

/** Whether a server here can restrict the outgoing connections of containers of the engine behind the socket. */
export async function probeDockerEgress(socket: string): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  if (!existsSync(socket)) return { ok: false, reason: `nothing listens at ${socket}` };
  const problem = filterProblem(socket);
  return problem === null ? { ok: true, detail: "packets of its containers can be filtered" } : { ok: false, reason: problem };
}

/** Connects two network interfaces and adds a firewall table, in a network of its own that ends with the command. */
export async function probeNetwork(): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  for (const program of ["ip", "nft"]) {
    const found = await probeProgram(program, ["-V"]);
    if (!found.ok) return found;
  }
  const script = "ip link add probe0 type veth peer name probe1 && nft add table inet probe";
  const ran = await probeProgram("unshare", ["--net", "sh", "-c", script]);
  return ran.ok ? { ok: true, detail: "interfaces and firewall rules can be created" } : ran;
}

/** Looks for the subnet that sandboxes of the home would get. */
export async function probeSubnet(home: string, wanted?: string): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  return attempt(async () => `${formatIpv4Network(await findSubnet(home, wanted))} is free`);
}

/** Starts a program in a user namespace, as container tools without root do. */
export async function probeUserNamespaces(): Promise<ProbeResult> {
  const ran = await probeProgram("unshare", ["--user", "--map-root-user", "true"]);
  return ran.ok ? { ok: true, detail: "can be created" } : ran;
}

function inNewFolder(home: string, act: (folder: string) => Promise<string>): Promise<ProbeResult> {
  return attempt(() => inNewFolderOf(home, act));
}

async function inNewFolderOf<T>(home: string, act: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(existing(home), ".probe-"));
  try {
    return await act(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The folder, or the nearest one above it that exists: it is on the same file system. */
function existing(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existing(dirname(folder));
}

async function attempt(act: () => Promise<string>): Promise<ProbeResult> {
  try {
    return { ok: true, detail: await act() };
  } catch (error) {
    return { ok: false, reason: messageOf(error) };
  }
}

function newGroupPath(): string {
  return `/aenv-probe-${randomBytes(6).toString("hex")}/one`;
}

function isRootOnLinux(): boolean {
  return process.platform === "linux" && process.getuid?.() === 0;
}

function needsRoot(): ProbeResult {
  return { ok: false, reason: process.platform === "linux" ? "needs root" : "needs Linux" };
}

function firstLine(text: string): string {
  return text.trim().split("\n")[0] ?? "";
}
