import { baseRunnerCommand } from "../base-root/files.ts";
import type { EngineKind } from "../engine/kind.ts";
import type { DockerServerSettings } from "./open.ts";

export const dockerKind: EngineKind<DockerServerSettings> = {
  summary: "the same with Docker or Podman",
  variants: [
    { runtime: "runc", use: "isolated by a Docker or Podman engine", needs: ["init", "docker"] },
    { runtime: "runsc", use: "the same, with a kernel of its own", needs: ["init", "docker with runsc"] },
  ],
  // Who runs the command may start any container with them.
  embeddedSettings: { taskCapabilities: "docker" },
  open: async (settings, host) => ({ engine: (await import("./open.ts")).openDocker(settings, host), runner: baseRunnerCommand }),
  openImages: async (settings, access) => (await import("./image-store.ts")).openImages(settings, access),
};
