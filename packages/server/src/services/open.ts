import type { SandboxEngine } from "@aenv/sandbox";
import type { Lifecycle } from "../lifecycle/lifecycle.ts";
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
  readonly lifecycle: Lifecycle;
  readonly roundMs: number;
}

/** Puts together what manages services. */
export function openServices(options: OpenServicesOptions): { services: Services; reconciler: Reconciler } {
  const { engine, lifecycle, roundMs } = options;
  const workloads = engine.services === undefined ? undefined : new Workloads({ ...options, services: engine.services });
  const reconciler = new Reconciler({ ...options, storage: new Storage(options.home), workloads });
  lifecycle.every({
    work: () => reconciler.tidy(),
    everyMs: roundMs,
    failure: "a round of the services failed",
    isFirstAtOnce: true,
  });
  lifecycle.on("stop", () => reconciler.close());
  return { services: new Services({ ...options, reconciler, workloads }), reconciler };
}
