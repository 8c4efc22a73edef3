import { baseRunnerCommand } from "../base-root/files.ts";
import type { EngineKind } from "../engine/kind.ts";
import type { OciServerSettings } from "./open.ts";

const NEEDS = ["overlay", "control groups", "network", "subnet"];

export const ociKind: EngineKind<OciServerSettings> = {
  summary: "own files, processes and network; Linux, root",
  variants: [
    { runtime: "runc", use: "isolated, with the kernel of this machine", needs: ["init", "runc", ...NEEDS] },
    { runtime: "runsc", use: "isolated, with a kernel of its own", needs: ["init", "runsc", ...NEEDS] },
  ],
  embeddedSettings: {},
  open: async (settings, host) => ({ engine: (await import("./open.ts")).openOci(settings, host), runner: baseRunnerCommand }),
  openImages: async (settings, access) => (await import("./image-store.ts")).openImages(settings, access),
};
