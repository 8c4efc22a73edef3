import { openBaseOnce } from "../base-root/base-root.ts";
import type { SandboxRuntime } from "../engine/engine.ts";
import type { EngineHost } from "../engine/kind.ts";
import type { CapabilityLimit } from "../spec/capabilities.ts";
import { DockerEngine } from "./engine.ts";
import type { DockerImageSettings } from "./image-store.ts";

/** The settings of the server that the engine depends on. */
export interface DockerServerSettings extends DockerImageSettings {
  readonly home: string;
  readonly dataDir: string;
  readonly runtime: SandboxRuntime;
  readonly imageRegistries: readonly string[];
  readonly insecureRegistries: readonly string[];
  readonly sandboxSubnet: string | null;
  readonly taskCapabilities: CapabilityLimit;
}

export function openDocker(settings: DockerServerSettings, host: EngineHost): DockerEngine {
  const { home, dataDir, runtime, dockerSocket, registryAuth, imageRegistries, insecureRegistries, sandboxSubnet } = settings;
  return new DockerEngine({
    home,
    capabilityLimit: settings.taskCapabilities,
    socket: dockerSocket,
    base: openBaseOnce("docker", home, host.runnerCode),
    folders: [dataDir],
    imageRegistries,
    insecureRegistries,
    log: host.log,
    onRefused: host.onRefused,
    onLimit: host.onLimit,
    ...(runtime === "runsc" && { runtime }),
    ...(sandboxSubnet !== null && { subnet: sandboxSubnet }),
    ...(registryAuth !== null && { authFile: registryAuth }),
  });
}
