import { PlatformError } from "@aenv/contract";
import type { Architecture } from "../engine/architecture.ts";
import type { SandboxRuntime, SandboxSpec } from "../engine/engine.ts";
import { DEFAULT_PROCESSES } from "../spec/limits.ts";
import type { DockerApi, Json } from "./api.ts";

/** What a daemon can do. */
export interface Daemon {
  readonly isPodman: boolean;
  readonly defaultRuntime: string;
  /** The arguments of each runtime that it can use. */
  readonly runtimes: Readonly<Record<string, readonly string[]>>;
  readonly architecture: Architecture;
  /** Root of a container is another user of the machine: the daemon maps users, or runs without root itself. */
  readonly mapsUsers: boolean;
  /** Throws `sandbox.unsupported` for a limit that the daemon would ignore. */
  assertLimits(spec: SandboxSpec): void;
}

export async function readDaemon(api: DockerApi): Promise<Daemon> {
  const [info, version] = await Promise.all([api.call("GET", "/info"), api.call("GET", "/version")]);
  return parseDaemon(info, version);
}

export function parseDaemon(info: Json, version: Json): Daemon {
  const components = Array.isArray(version.Components) ? (version.Components as Json[]) : [];
  const runtimes = Object.entries((info.Runtimes ?? {}) as Readonly<Record<string, Json>>);
  return {
    isPodman: components.some(({ Name: name }) => String(name).startsWith("Podman")),
    defaultRuntime: String(info.DefaultRuntime ?? "runc"),
    runtimes: Object.fromEntries(
      runtimes.map(([name, { runtimeArgs }]) => [name, Array.isArray(runtimeArgs) ? runtimeArgs.map(String) : []]),
    ),
    architecture: version.Arch === "arm64" ? "arm64" : "x64",
    mapsUsers: (Array.isArray(info.SecurityOptions) ? info.SecurityOptions : []).some((one) =>
      /^name=(?:userns|rootless)\b/.test(String(one)),
    ),
    assertLimits: (spec) => assertLimits(spec, info),
  };
}

export interface ChosenRuntime {
  readonly runtimeName: string | null;
  readonly runtime: SandboxRuntime;
  readonly architecture: Architecture;
  /** Set-user-id programs change the user if the container allows it. */
  readonly setsUserIds: boolean;
}

/** What to ask the daemon for, and what that is. */
export function runtimeFor(wanted: SandboxRuntime | undefined, daemon: Daemon): ChosenRuntime {
  const { architecture, runtimes, defaultRuntime } = daemon;
  // Podman often has crun instead, which shares the machine's kernel as well.
  const isDefault = wanted === undefined || (wanted === "runc" && runtimes.runc === undefined && kindOf(defaultRuntime) === "runc");
  const name = isDefault ? defaultRuntime : wanted;
  const runtime = kindOf(name);
  if (!isDefault && runtimes[wanted] === undefined)
    throw new PlatformError(
      "sandbox.unsupported",
      `the Docker daemon has no runtime '${wanted}', only ${Object.keys(runtimes).join(", ") || "its default"}: ${advice[wanted]}`,
    );
  const options = runtimes[name] ?? [];
  // The init listens in a folder of this machine, which gVisor's kernel allows only with this option.
  if (runtime === "runsc" && options.length > 0 && !options.some((option) => /^--?host-uds=(all|create)$/.test(option)))
    throw new PlatformError("sandbox.unsupported", `the runtime '${name}' of the Docker daemon lacks an option: ${advice.runsc}`);
  const setsUserIds = runtime === "runc" || options.some((option) => /^--?allow-suid(?:=true)?$/.test(option));
  return { runtimeName: isDefault ? null : name, runtime, architecture, setsUserIds };
}

/** Runtime of containers that name none. */
export function defaultKind({ defaultRuntime }: Daemon): SandboxRuntime {
  return kindOf(defaultRuntime);
}

function kindOf(name: string): SandboxRuntime {
  return name.includes("runsc") ? "runsc" : "runc";
}

const advice = {
  runc: "install it, or choose another runtime",
  runsc:
    'register it in /etc/docker/daemon.json with "runtimes": {"runsc": {"path": "/usr/local/bin/runsc", "runtimeArgs": ["--host-uds=all"]}}, and restart the daemon',
} as const;

function assertLimits({ id, resources = {} }: SandboxSpec, info: Json): void {
  const limits = [
    ["memoryMb", resources.memoryMb, info.MemoryLimit],
    ["cpus", resources.cpus, info.CpuCfsQuota ?? info.CPUCfsQuota],
    // Every sandbox has one.
    ["processes", resources.processes ?? DEFAULT_PROCESSES, info.PidsLimit],
  ] as const;
  for (const [name, value, isPossible] of limits) {
    if (value === undefined || isPossible !== false) continue;
    const advice =
      name === "processes" ? "without it a sandbox could use up those of the machine, so enable it" : "enable it, or remove the limit";
    throw new PlatformError(
      "sandbox.unsupported",
      `the limit ${name} (${value}) of sandbox '${id}' cannot be set: the Docker daemon has no control group controller for it; ${advice}`,
    );
  }
}
