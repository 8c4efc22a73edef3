import { dockerKind } from "./docker/kind.ts";
import { kubernetesKind } from "./kubernetes/kind.ts";
import { ociKind } from "./oci/kind.ts";
import { processKind } from "./process/kind.ts";

/** Every engine, by the value of the setting `engine`. The settings, the options of commands and `aenv doctor` read this table. */
export const engines = {
  process: processKind,
  oci: ociKind,
  docker: dockerKind,
  kubernetes: kubernetesKind,
} as const;

export type EngineName = keyof typeof engines;

export const engineNames = Object.keys(engines) as [EngineName, ...EngineName[]];

/** The engine that needs nothing but this machine. */
export const DEFAULT_ENGINE: EngineName = "process";
