import { accessSync, constants } from "node:fs";
import { messageOf } from "@aenv/contract";
import {
  type Architecture,
  clusterAccess,
  type EngineVariant,
  engineNames,
  engines,
  initProgram,
  type ProbeResult,
  probeCluster,
  probeControlGroups,
  probeDocker,
  probeDockerEgress,
  probeNetwork,
  probeOverlay,
  probeOwnUsers,
  probeProgram,
  probeSandbox,
  probeSubnet,
  probeUserNamespaces,
} from "@aenv/sandbox";
import type { ServerConfig } from "@aenv/server";
import { findBuilders } from "../image/builder.ts";
import type { Check } from "./check.ts";
import { diagnoseCluster } from "./cluster/diagnose.ts";
import { installCommand } from "./install.ts";

export interface Diagnosis {
  readonly engines: readonly Check[];
  /** What the engines need, and tools for other tasks. */
  readonly parts: readonly Check[];
}

/** Every engine with each of its runtimes, such as `oci/runc`. */
const VARIANTS: ReadonlyMap<string, EngineVariant> = new Map(
  engineNames.flatMap((engine) => engines[engine].variants.map((variant) => [nameOf(engine, variant), variant] as const)),
);

/** The settings of the server that decide what works. */
export interface DoctorOptions {
  readonly config: ServerConfig;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const RUNSC = "install gVisor (https://gvisor.dev/docs/user_guide/install), or give its path with --runsc";
const AS_ROOT = "run the server as root on Linux, or use the engine docker";

/** Tries everything that an engine or a command needs. Each probe has a time limit and leaves nothing behind. */
export async function diagnose(options: DoctorOptions): Promise<Diagnosis> {
  const tried = await Promise.all(
    partsOf(options).map(async ({ name, use, get, probe }): Promise<Check> => {
      const result = await probe();
      return result.ok
        ? { name, use, ok: true, detail: result.detail, get: null }
        : { name, use, ok: false, detail: result.reason, get: /^needs (?:root|Linux)$/.test(result.reason) ? AS_ROOT : get };
    }),
  );
  const parts = [...tried, ...(await clusterParts(options, tried))];
  return { engines: [...VARIANTS].map(([name, variant]) => engineCheck(name, variant, parts)), parts };
}

/** The name of the engine that these settings choose, with its runtime if it has several. */
export function chosenName({ engine, runtime }: Pick<ServerConfig, "engine" | "runtime">): string {
  return nameOf(engine, { ...engines[engine].variants.find((variant) => variant.runtime === runtime) });
}

function nameOf(engine: string, { runtime }: Pick<EngineVariant, "runtime">): string {
  return runtime === undefined ? engine : `${engine}/${runtime}`;
}

/** Only for an engine that needs a cluster, because it starts pods, and only if the cluster answers. */
async function clusterParts({ config }: DoctorOptions, tried: readonly Check[]): Promise<readonly Check[]> {
  const cluster = tried.find(({ name }) => name === "kubernetes");
  if (cluster === undefined || !VARIANTS.get(chosenName(config))?.needs.includes(cluster.name)) return [];
  // An account without its rights is looked at in detail.
  if (!cluster.ok && !cluster.detail.startsWith("its account may not")) return [];
  return diagnoseCluster(config);
}

interface Part {
  readonly name: string;
  readonly use: string;
  readonly get: string | null;
  readonly probe: () => Promise<ProbeResult>;
}

function partsOf({ config, env }: DoctorOptions): readonly Part[] {
  const { home, imageStore, sandboxUsers: users, dockerSocket, runc, runsc, sandboxSubnet } = config;
  const place = { home, store: imageStore ?? undefined, users };
  const program = (name: string, ...args: string[]) => probeProgram(name, args, env);
  return [
    { name: "init", use: "process 1 of sandboxes", get: null, probe: () => probeInit() },
    { name: "runc", use: "oci sandboxes", get: installCommand("runc"), probe: () => probeSandbox("runc", place, runc ?? undefined) },
    {
      name: "runsc",
      use: "oci sandboxes with their own kernel",
      get: RUNSC,
      probe: () => probeSandbox("runsc", place, runsc ?? undefined),
    },
    {
      name: "overlay",
      use: "files of oci sandboxes",
      get: `choose a home on another file system, such as ext4`,
      probe: () => probeOverlay(home),
    },
    {
      name: "own users",
      use: "oci sandboxes with runc whose root is no user of this machine",
      get: "use Linux 5.19 or newer, with home and image store on ext4, XFS or btrfs, and sandboxUsers own; or the runtime runsc",
      probe: () => probeOwnUsers(place),
    },
    {
      name: "disk limits",
      use: "diskMb of oci sandboxes with runc",
      get: installCommand("disk"),
      probe: () => probeProgram("mkfs.ext4", ["-V"]),
    },
    {
      name: "control groups",
      use: "limits of oci sandboxes",
      get: "mount them at /sys/fs/cgroup, and allow this process to write there",
      probe: probeControlGroups,
    },
    { name: "network", use: "outgoing connections of oci and docker sandboxes", get: installCommand("network"), probe: probeNetwork },
    {
      name: "subnet",
      use: "addresses of oci and docker sandboxes",
      get: "name a network that no route of this machine uses with --sandbox-subnet, such as 172.30.0.0/16",
      probe: () => probeSubnet(home, sandboxSubnet ?? undefined),
    },
    {
      name: "skopeo",
      use: "images of archives and of Docker for oci sandboxes",
      get: installCommand("skopeo"),
      probe: () => program("skopeo", "--version"),
    },
    {
      name: "docker",
      use: "the engine docker",
      get: `${installCommand("docker")}, start it, or give its socket with --docker-socket`,
      probe: () => probeDocker(dockerSocket, "runc"),
    },
    {
      name: "docker egress",
      use: "policies for the outgoing connections of docker sandboxes",
      get: "run the server as root on the daemon's machine and in its network namespace, with ip and nft",
      probe: () => probeDockerEgress(dockerSocket),
    },
    {
      name: "docker with runsc",
      use: "containers with their own kernel",
      get: "register runsc in /etc/docker/daemon.json (https://gvisor.dev/docs/user_guide/quick_start/docker)",
      probe: () => probeDocker(dockerSocket, "runsc"),
    },
    {
      name: "kubernetes",
      use: "the engine kubernetes",
      get: "name a kubeconfig with --kubeconfig and a namespace with --kube-namespace, and give its account the rights of the chart's Role",
      probe: () => probeKubernetes(config),
    },
    {
      name: "image builder",
      use: "aenv build --image",
      get: `${installCommand("builder")}, or use Docker`,
      probe: () => probeBuilders(env),
    },
    { name: "user namespaces", use: "container tools without root", get: installCommand("user-namespaces"), probe: probeUserNamespaces },
    { name: "kvm", use: "virtual machines; no engine needs them", get: null, probe: async () => probeKvm() },
    { name: "redis", use: "servers that share a store", get: installCommand("redis"), probe: () => program("redis-server", "--version") },
    { name: "python", use: "the Python client", get: installCommand("python"), probe: () => program("python3", "--version") },
  ];
}

function engineCheck(name: string, { use, needs }: EngineVariant, parts: readonly Check[]): Check {
  const failed = parts.filter((part) => needs.includes(part.name) && !part.ok);
  const [first] = failed;
  const missing = failed.map((part) => part.name).join(", ");
  return {
    name,
    use,
    ok: failed.length === 0,
    detail: failed.length === 0 ? use : `does not work without: ${missing}`,
    get: first?.get ?? null,
  };
}

async function probeInit(): Promise<ProbeResult> {
  try {
    if (process.arch !== "x64" && process.arch !== "arm64") return { ok: false, reason: `there is no init for ${process.arch}` };
    return { ok: true, detail: await initProgram(process.arch satisfies Architecture) };
  } catch (error) {
    return { ok: false, reason: messageOf(error) };
  }
}

async function probeBuilders(env: DoctorOptions["env"]): Promise<ProbeResult> {
  const found = await findBuilders(env);
  return found.length > 0 ? { ok: true, detail: found.join(", ") } : { ok: false, reason: "no Docker engine, buildah or podman" };
}

async function probeKubernetes(config: ServerConfig): Promise<ProbeResult> {
  if (config.kubeconfig === null && config.kubeServer === null) return { ok: false, reason: "no kubeconfig is named" };
  try {
    return await probeCluster({
      access: clusterAccess(config),
      namespace: config.kubeNamespace,
      networkPolicies: config.kubeNetworkPolicies,
    });
  } catch (error) {
    return { ok: false, reason: messageOf(error) };
  }
}

function probeKvm(): ProbeResult {
  try {
    accessSync("/dev/kvm", constants.R_OK | constants.W_OK);
    return { ok: true, detail: "/dev/kvm can be opened" };
  } catch {
    return { ok: false, reason: "no access to /dev/kvm" };
  }
}
