import type { SandboxEngine } from "@aenv/sandbox";
import { Reconciler, type ReconcilerOptions } from "./reconciler.ts";
import { Services, type ServicesOptions } from "./services.ts";
import { Storage } from "./storage.ts";
import { Workloads, type WorkloadsOptions } from "./workloads.ts";

export interface OpenServicesOptions
  extends Omit<ServicesOptions, "reconciler" | "workloads">,
    Omit<ReconcilerOptions, "storage" | "workloads">,
    Omit<WorkloadsOptions, "services" | "engine" | "rows"> {
  readonly home: string;
  readonly engine: SandboxEngine;
}

/** Puts together what manages services. */
export function openServices(options: OpenServicesOptions): { services: Services; reconciler: Reconciler } {
  const { engine } = options;
  const workloads = engine.services === undefined ? undefined : new Workloads({ ...options, services: engine.services });
  const reconciler = new Reconciler({ ...options, storage: new Storage(options.home), workloads });
  return { services: new Services({ ...options, reconciler, workloads }), reconciler };
}
