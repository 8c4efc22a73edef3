import { baseRunnerCommand } from "../base-root/files.ts";
import type { EngineKind } from "../engine/kind.ts";
import type { KubernetesServerSettings } from "./open.ts";

export const kubernetesKind: EngineKind<KubernetesServerSettings> = {
  summary: "pods of a cluster",
  variants: [{ use: "pods of a cluster", needs: ["kubernetes", "cluster rights", "quota", "runtime classes", "pod templates", "pod"] }],
  open: async (settings, host) => ({ engine: (await import("./open.ts")).openKubernetes(settings, host), runner: baseRunnerCommand }),
};
