import { type PodTemplates, quantityValue } from "@aenv/sandbox";
import type { Quota } from "./facts.ts";

type Pod = ReturnType<PodTemplates["get"]>;

export interface QuotaRoom {
  /** How many more pods of the template the quotas admit. */
  readonly pods: number;
  /** What runs out first, such as `limits.memory of aenv`. */
  readonly limitedBy: string;
}

/** Null if no quota limits pods. */
export function roomIn(quotas: readonly Quota[], template: Pod): QuotaRoom | null {
  let least: QuotaRoom | null = null;
  for (const { name, hard, used } of quotas) {
    for (const [resource, limit] of Object.entries(hard)) {
      const need = needOf(resource, template);
      if (need === 0) continue;
      const free = amountOf(limit) - amountOf(used[resource] ?? "0");
      const pods = Math.max(0, Math.floor(free / need));
      if (least === null || pods < least.pods) least = { pods, limitedBy: `${resource} of ${name}` };
    }
  }
  return least;
}

/** How much one pod counts against a resource of a quota; 0 if it does not. */
function needOf(resource: string, template: Pod): number {
  if (resource === "pods" || resource === "count/pods") return 1;
  const [, kind = "requests", name = ""] = /^(?:(requests|limits)\.)?(cpu|memory|ephemeral-storage)$/.exec(resource) ?? [];
  if (name === "") return 0;
  let sum = 0;
  for (const { resources = {} } of template.spec.containers) {
    const { limits = {}, requests = {} } = resources;
    // Kubernetes takes the limit for a request that is not given.
    sum += amountOf((kind === "limits" ? limits[name] : (requests[name] ?? limits[name])) ?? "0");
  }
  return sum;
}

function amountOf(quantity: unknown): number {
  return quantityValue(String(quantity), "a quota");
}
