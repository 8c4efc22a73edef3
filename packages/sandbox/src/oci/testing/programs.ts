import type { OciEngineOptions } from "../options.ts";

/** The engine's options for each program that starts sandboxes. Where crun is installed, it is the default for runc. */
export const programs = {
  crun: { runtime: "runc" },
  runc: { runtime: "runc", runcPath: "runc" },
  runsc: { runtime: "runsc" },
} as const satisfies Record<string, Partial<OciEngineOptions>>;

export type Program = keyof typeof programs;
