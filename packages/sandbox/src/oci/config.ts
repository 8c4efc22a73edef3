import { type CapabilitySet, PlatformError, type Resources } from "@aenv/contract";
import type { Architecture } from "../engine/architecture.ts";
import { CAPABILITIES } from "../spec/capabilities.ts";
import { CPU_PERIOD_US, DEFAULT_OPEN_FILES, type GroupLimits, groupLimits, type Runtime } from "../spec/limits.ts";
import {
  DEFAULT_SHM_MB,
  INIT_PATH,
  initMount,
  MASKED,
  type OciMount,
  READ_ONLY,
  type SandboxMount,
  sandboxMount,
  systemMounts,
} from "../spec/mounts.ts";
import { type SeccompProfile, seccompProfile } from "../spec/seccomp.ts";
import { ANNOUNCES } from "./announcement.ts";
import type { UserMapping } from "./overlay/mapped.ts";

/** What the configuration of a sandbox is computed from. */
export interface ConfigInput {
  readonly runtime: Runtime;
  readonly architecture: Architecture;
  readonly hostname: string;
  /** The mounted root file system. */
  readonly rootPath: string;
  readonly isRootReadOnly?: boolean;
  /** The root has a /sys of the network namespace. */
  readonly isSysMounted?: boolean;
  /** The init program on this machine, and its arguments. */
  readonly initPath: string;
  readonly initArguments: readonly string[];
  /** The file of a prepared network namespace; null for a new one without a connection. There is no way to share the machine's. */
  readonly networkNamespace: string | null;
  /** Maps root of the sandbox to this user of the machine, and so on. Null: the sandbox's users are those of the machine. */
  readonly userMapping: UserMapping | null;
  readonly mounts: readonly SandboxMount[];
  /** The filter of system calls, compiled by crun for an earlier sandbox. That takes it a tenth of a start. */
  readonly compiledFilter?: string | null;
  readonly resources: Resources;
  /** Open files of each process. */
  readonly openFiles?: number | undefined;
  /** What its root may do; `minimal` if absent. With more, set-user-id programs change the user. */
  readonly capabilities?: CapabilitySet;
  /** The control group, below the root of each hierarchy. */
  readonly groupPath: string;
}

/** The parts of the OCI runtime specification 1.0.2 that are used. */
export interface OciConfig {
  readonly ociVersion: "1.0.2";
  readonly hostname: string;
  readonly root: { readonly path: string; readonly readonly: boolean };
  readonly process: {
    readonly terminal: false;
    readonly user: { readonly uid: 0; readonly gid: 0 };
    readonly args: readonly string[];
    readonly env: readonly string[];
    readonly cwd: "/";
    readonly capabilities: Readonly<Record<"bounding" | "effective" | "permitted" | "inheritable" | "ambient", readonly string[]>>;
    readonly rlimits: readonly { readonly type: string; readonly hard: number; readonly soft: number }[];
    readonly noNewPrivileges: boolean;
    readonly oomScoreAdj: number;
  };
  readonly mounts: readonly OciMount[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly linux: {
    readonly namespaces: readonly { readonly type: string; readonly path?: string }[];
    readonly uidMappings?: readonly IdMapping[];
    readonly gidMappings?: readonly IdMapping[];
    readonly cgroupsPath: string;
    readonly resources: OciResources;
    readonly seccomp?: SeccompProfile;
    readonly rootfsPropagation: "private";
    readonly maskedPaths: readonly string[];
    readonly readonlyPaths: readonly string[];
  };
}

interface IdMapping {
  readonly containerID: number;
  readonly hostID: number;
  readonly size: number;
}

interface OciResources {
  readonly devices: readonly { readonly allow: false; readonly access: "rwm" }[];
  readonly memory?: { readonly limit: number; readonly swap: number };
  readonly cpu?: { readonly quota: number; readonly period: number };
  readonly pids?: { readonly limit: number };
}

/** An annotation of crun: this filter is used instead of the profile. Other programs ignore it and compile the profile. */
const COMPILED_FILTER = "run.oci.seccomp_bpf_data";

/**
 * The OCI `config.json` of a sandbox. The init starts every program, with variables that it receives over its connection, so no
 * variable of an environment, and therefore no secret, is in this file.
 */
export function ociConfig(input: ConfigInput): OciConfig {
  if (!/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(input.hostname))
    throw invalid(`'${input.hostname}' is not a host name: use up to 63 letters a-z, digits and '-'`);
  if (!/^(?:\/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$/.test(input.groupPath))
    throw invalid(`'${input.groupPath}' is not the path of a control group, such as /aenv/one`);
  const isRunc = input.runtime === "runc";
  const { capabilities: allowed = "minimal" } = input;
  const capabilities = CAPABILITIES[allowed];
  return {
    ociVersion: "1.0.2",
    hostname: input.hostname,
    root: { path: input.rootPath, readonly: input.isRootReadOnly ?? false },
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: [INIT_PATH, ...input.initArguments],
      env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", `${ANNOUNCES}=1`],
      cwd: "/",
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities, inheritable: [], ambient: [] },
      rlimits: resourceLimits(input),
      // It would keep sudo and other set-user-id programs from changing the user.
      noNewPrivileges: allowed === "minimal",
      // When the machine runs out of memory, the kernel ends sandboxes before the server.
      oomScoreAdj: 500,
    },
    mounts: [
      ...systemMounts({ cgroup: isRunc, sys: sysOf(input), shmMb: input.resources.shmMb ?? DEFAULT_SHM_MB }),
      initMount(input.initPath),
      // Parents first: a mount hides what was mounted below it before.
      ...input.mounts.map(sandboxMount).toSorted((a, b) => a.destination.split("/").length - b.destination.split("/").length),
    ],
    ...(isRunc && input.compiledFilter != null && { annotations: { [COMPILED_FILTER]: input.compiledFilter } }),
    linux: {
      namespaces: namespaces(input),
      ...idMappings(input.userMapping),
      cgroupsPath: input.groupPath,
      resources: resources(groupLimits(input.resources, input.runtime)),
      // gVisor's kernel runs under a filter of its own, and does not apply this one.
      ...(isRunc && { seccomp: seccompProfile(input.architecture) }),
      rootfsPropagation: "private",
      maskedPaths: MASKED,
      readonlyPaths: READ_ONLY,
    },
  };
}

function sysOf({ isSysMounted = false, userMapping, networkNamespace }: ConfigInput): "new" | "empty" | "given" {
  if (isSysMounted) return "given";
  // The kernel refuses a sysfs of a network namespace that belongs to another user namespace.
  return userMapping === null || networkNamespace === null ? "new" : "empty";
}

function namespaces({ networkNamespace, userMapping, runtime }: ConfigInput): { readonly type: string; readonly path?: string }[] {
  return [
    { type: "pid" },
    { type: "ipc" },
    { type: "uts" },
    { type: "mount" },
    { type: "network", ...(networkNamespace !== null && { path: networkNamespace }) },
    ...(runtime === "runc" ? [{ type: "cgroup" }] : []),
    ...(userMapping === null ? [] : [{ type: "user" }]),
  ];
}

function idMappings(mapping: ConfigInput["userMapping"]): { uidMappings?: IdMapping[]; gidMappings?: IdMapping[] } {
  if (mapping === null) return {};
  const { hostId, size } = mapping;
  if (!Number.isSafeInteger(hostId) || !Number.isSafeInteger(size) || hostId < 1 || size < 1 || hostId + size > 2 ** 32)
    throw invalid(
      `users of the sandbox cannot be mapped to ${size} users of the machine from ${hostId}; root of the machine must not be among them`,
    );
  const all = [{ containerID: 0, hostID: hostId, size }];
  return { uidMappings: all, gidMappings: all };
}

/** The runtime translates these for cgroup v1 and v2. */
function resources({ memoryBytes, cpuQuotaUs, pids }: GroupLimits): OciResources {
  return {
    devices: [{ allow: false, access: "rwm" }],
    // Memory and swap together: the sandbox gets no swap.
    ...(memoryBytes !== undefined && { memory: { limit: memoryBytes, swap: memoryBytes } }),
    ...(cpuQuotaUs !== undefined && { cpu: { quota: cpuQuotaUs, period: CPU_PERIOD_US } }),
    ...(pids !== undefined && { pids: { limit: pids } }),
  };
}

function resourceLimits({
  openFiles = DEFAULT_OPEN_FILES,
  resources: { cpuSeconds },
}: ConfigInput): { type: string; hard: number; soft: number }[] {
  const same = (type: string, value: number) => ({ type, hard: value, soft: value });
  return [same("RLIMIT_NOFILE", openFiles), same("RLIMIT_CORE", 0), ...(cpuSeconds === undefined ? [] : [same("RLIMIT_CPU", cpuSeconds)])];
}

function invalid(message: string): PlatformError {
  return new PlatformError("request.invalid", message);
}
