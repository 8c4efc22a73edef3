import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Architecture } from "../engine/architecture.ts";
import type { SandboxRuntime, SandboxSpec } from "../engine/engine.ts";
import { CAPABILITIES } from "../spec/capabilities.ts";
import { CPU_PERIOD_US, DEFAULT_OPEN_FILES, DEFAULT_PROCESSES, groupLimits } from "../spec/limits.ts";
import { DEFAULT_SHM_MB, INIT_PATH, MASKED, READ_ONLY, tmpfsOptions } from "../spec/mounts.ts";
import { type SeccompRule, seccompProfile } from "../spec/seccomp.ts";

/** Where the init listens in the container. */
const RUN_FOLDER = "/.aenv/run";
export const INIT_SOCKET = "init";

/** Labels of containers. Those of one home are found, adopted and removed by its servers, all others are left alone. */
export const HOME_LABEL = "aenv.home";
export const SANDBOX_LABEL = "aenv.sandbox";

export interface ContainerInput {
  readonly homeId: string;
  readonly spec: SandboxSpec;
  /** An id or name that the daemon knows. */
  readonly image: string;
  /** What the daemon is asked for; null for its default. */
  readonly runtimeName: string | null;
  /** What that is, as far as limits and filters depend on it. */
  readonly runtime: SandboxRuntime;
  readonly architecture: Architecture;
  readonly initPath: string;
  readonly initKey: string;
  /** A folder of this machine in which the init creates its socket. */
  readonly runFolder: string;
  /** Folders of this machine that are readable at the same path. */
  readonly folders: readonly string[];
  /** The network with which it is created; null for none. */
  readonly network: string | null;
  /** The only name servers that it may ask; null for those of the daemon. */
  readonly nameServers: readonly string[] | null;
  /** The name of a volume. */
  readonly volumeName: (id: string) => string;
  /** Docker takes the profile itself; Podman takes the path of a file. */
  readonly seccomp: string;
  /** Absent: that of the daemon. */
  readonly userProcesses?: number;
}

/** The body of `POST /containers/create`. No variable of the program, and therefore no secret, is in it: the init gets them later. */
export function containerConfig(input: ContainerInput): object {
  const { spec, runtime } = input;
  const { resources = {}, capabilities = "minimal" } = spec;
  const { diskMb, shmMb = DEFAULT_SHM_MB } = resources;
  const cpuSeconds = resources.cpuSeconds === undefined ? {} : { cpuSeconds: Math.ceil(resources.cpuSeconds) };
  const { networks: [first] = [], volumes = [], tmpfs = [], hosts = [] } = spec;
  const limits = groupLimits({ ...resources, ...cpuSeconds, processes: processesOf(spec) }, runtime);
  return {
    Image: input.image,
    Hostname: hostnameOf(spec.id),
    // The init is root; it starts the program as the user of the image.
    User: "0:0",
    WorkingDir: "/",
    Entrypoint: [INIT_PATH, "--listen", `unix:${RUN_FOLDER}/${INIT_SOCKET}`, "--key", input.initKey],
    Cmd: [],
    Env: [],
    Tty: false,
    OpenStdin: false,
    Healthcheck: { Test: ["NONE"] },
    Labels: { [HOME_LABEL]: input.homeId, [SANDBOX_LABEL]: spec.id },
    ...(first !== undefined &&
      input.network !== null && { NetworkingConfig: { EndpointsConfig: { [input.network]: { Aliases: first.aliases } } } }),
    HostConfig: {
      ...(input.runtimeName !== null && { Runtime: input.runtimeName }),
      NetworkMode: input.network ?? "none",
      ...nameSettings(input),
      RestartPolicy: { Name: "no" },
      AutoRemove: false,
      Privileged: false,
      IpcMode: "private",
      ShmSize: shmMb * 2 ** 20,
      ...(tmpfs.length > 0 && { Tmpfs: Object.fromEntries(tmpfs.map((folder) => [folder.path, tmpfsOptions(folder).join(",")])) }),
      ...(hosts.length > 0 && { ExtraHosts: hosts.map(({ name, address }) => `${name}:${address}`) }),
      // Docker disables IPv6 in networks without it, also on the loopback interface, where programs listen on ::1.
      ...(runtime === "runc" && { Sysctls: { "net.ipv6.conf.lo.disable_ipv6": "0" } }),
      CapDrop: ["ALL"],
      CapAdd: CAPABILITIES[capabilities],
      SecurityOpt: [
        ...(capabilities === "minimal" ? ["no-new-privileges"] : []),
        ...(runtime === "runc" ? [`seccomp=${input.seccomp}`] : []),
      ],
      MaskedPaths: MASKED,
      ReadonlyPaths: READ_ONLY,
      // When the machine runs out of memory, the kernel ends sandboxes before the server.
      OomScoreAdj: 500,
      ...(limits.memoryBytes !== undefined && { Memory: limits.memoryBytes, MemorySwap: limits.memoryBytes }),
      ...(limits.cpuQuotaUs !== undefined && { CpuPeriod: CPU_PERIOD_US, CpuQuota: limits.cpuQuotaUs }),
      ...(limits.pids !== undefined && { PidsLimit: limits.pids }),
      ...(diskMb !== undefined && { StorageOpt: { size: `${diskMb}m` } }),
      Ulimits: [
        ulimit("nofile", DEFAULT_OPEN_FILES),
        ulimit("core", 0),
        ...(input.userProcesses === undefined ? [] : [ulimit("nproc", input.userProcesses)]),
        ...Object.values(cpuSeconds).map((seconds) => ulimit("cpu", seconds)),
      ],
      Mounts: [
        { Type: "bind", Source: input.initPath, Target: INIT_PATH, ReadOnly: true },
        { Type: "bind", Source: input.runFolder, Target: RUN_FOLDER, ReadOnly: false },
        ...input.folders.map((folder) => ({ Type: "bind", Source: folder, Target: folder, ReadOnly: true })),
        ...(spec.mounts ?? []).map(({ source, target, isReadOnly }) => ({
          Type: "bind",
          Source: source,
          Target: target,
          ReadOnly: isReadOnly,
        })),
        ...volumes.map(({ id, path, isReadOnly }) => ({
          Type: "volume",
          Source: input.volumeName(id),
          Target: path,
          ReadOnly: isReadOnly,
        })),
      ],
      LogConfig: { Type: "json-file", Config: { "max-size": "4m", "max-file": "2" } },
    },
  };
}

/** The most processes of a sandbox. */
export function processesOf({ resources }: SandboxSpec): number {
  return Math.min(resources?.processes ?? DEFAULT_PROCESSES, DEFAULT_PROCESSES);
}

/** The daemon knows the names in a private network. Without egress, others are asked of nobody, so that none of them carries data out. */
function nameSettings({ spec: { networks = [], egress = "none" }, nameServers }: ContainerInput): object {
  const isClosed = networks.length > 0 && egress === "none";
  const servers = nameServers ?? (isClosed ? ["127.0.0.1"] : null);
  return {
    ...(servers !== null && { Dns: servers }),
    ...(isClosed && { DnsOptions: ["ndots:0", "timeout:1", "attempts:1"] }),
  };
}

/**
 * The filter of system calls, as Docker expects it. Docker 20.10 ignores the default error and uses EPERM, with which the C library
 * does not fall back from `clone3` to `clone`, so that no thread could be started.
 */
export function seccompText(architecture: Architecture): string {
  const { syscalls, ...profile } = seccompProfile(architecture);
  const fallsBack: SeccompRule = { names: ["clone3"], action: "SCMP_ACT_ERRNO", errnoRet: profile.defaultErrnoRet };
  return JSON.stringify({ ...profile, syscalls: [...syscalls, fallsBack] });
}

/** The same in a file. Podman reads it at every start, also while another process of this home writes it. */
export function seccompFile(folder: string, architecture: Architecture): string {
  const file = join(folder, "seccomp.json");
  const text = seccompText(architecture);
  if (existsSync(file) && readFileSync(file, "utf8") === text) return file;
  const part = `${file}.${process.pid}`;
  writeFileSync(part, text);
  renameSync(part, file);
  return file;
}

/** Unique on a daemon that several homes use. */
export function containerName(homeId: string, id: string): string {
  return `aenv-${homeId}-${id}`;
}

function ulimit(name: string, value: number): { Name: string; Soft: number; Hard: number } {
  return { Name: name, Soft: value, Hard: value };
}

function hostnameOf(id: string): string {
  const name = id
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 63);
  return name.replace(/^-|-$/g, "") || "sandbox";
}
