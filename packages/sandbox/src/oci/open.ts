import { existsSync } from "node:fs";
import { freemem } from "node:os";
import { openBaseOnce } from "../base-root/base-root.ts";
import type { SandboxRuntime } from "../engine/engine.ts";
import type { EngineHost } from "../engine/kind.ts";
import type { CapabilityLimit } from "../spec/capabilities.ts";
import type { RootFiles } from "./container.ts";
import { OciEngine } from "./engine.ts";
import { type OciImageSettings, unpackLimits } from "./image-store.ts";

/** The settings of the server that the engine depends on. */
export interface OciServerSettings extends OciImageSettings {
  /** The benchmarks find their data at the same path. */
  readonly dataDir: string;
  readonly runtime: SandboxRuntime;
  readonly runc: string | null;
  readonly runsc: string | null;
  readonly sandboxesReady: number;
  readonly poolTotal: number;
  readonly minAvailableMemoryMb: number;
  readonly imageRegistries: readonly string[];
  readonly sandboxUsers: "own" | "machine";
  readonly sandboxSubnet: string | null;
  readonly snapshotSpaceMb: number;
  readonly taskCapabilities: CapabilityLimit;
}

const UNPACK_MS = 120_000;

export function openOci(settings: OciServerSettings, host: EngineHost): OciEngine {
  const { home, dataDir, runtime, runc, runsc, sandboxesReady, poolTotal, minAvailableMemoryMb } = settings;
  const { registryAuth, imageRegistries, insecureRegistries, sandboxUsers, sandboxSubnet, imageStore, snapshotSpaceMb } = settings;
  const openBase = openBaseOnce("oci", home, host.runnerCode);
  return new OciEngine({
    home,
    runtime,
    poolSize: sandboxesReady,
    poolTotal,
    hasMemory: () => freemem() >= minAvailableMemoryMb * 2 ** 20,
    users: sandboxUsers,
    capabilityLimit: settings.taskCapabilities,
    log: host.warn ?? host.log,
    snapshotSpaceMb,
    onRefused: host.onRefused,
    onLimit: host.onLimit,
    ...(runc !== null && { runcPath: runc }),
    ...(runsc !== null && { runscPath: runsc }),
    ...(sandboxSubnet !== null && { subnet: sandboxSubnet }),
    ...(imageStore !== null && { storeFolder: imageStore }),
    images: {
      imageRegistries,
      insecureRegistries,
      unpackLimits: unpackLimits(settings),
      ...(registryAuth !== null && { authFile: registryAuth }),
      ...(host.machineVariables !== undefined && { variables: host.machineVariables }),
    },
    base: async (layers): Promise<RootFiles> => {
      const base = await openBase();
      await base.addTo(layers, AbortSignal.timeout(UNPACK_MS));
      const data = existsSync(dataDir) ? [{ kind: "bind", source: dataDir, target: dataDir, isReadOnly: true } as const] : [];
      return { layers: [base.digest], config: null, mounts: data };
    },
  });
}
