import type { KubernetesApi, KubernetesObject } from "./api/client.ts";
import { quantityValue } from "./pod/quantity.ts";
import type { Pod } from "./pod/types.ts";

/** A ResourceQuota. */
export interface Quota {
  readonly name: string;
  readonly hard: Readonly<Record<string, string>>;
  readonly used: Readonly<Record<string, string>>;
}

interface QuotaObject extends KubernetesObject {
  readonly spec?: {
    readonly hard?: Readonly<Record<string, string>>;
    readonly scopes?: readonly string[];
    readonly scopeSelector?: object;
  };
  readonly status?: Partial<Pick<Quota, "hard" | "used">>;
}

/** Scopes that every sandbox is in: it has limits, and no deadline of its own. */
const OWN_SCOPES = new Set(["NotTerminating", "NotBestEffort"]);

/** The quotas of a namespace that count sandboxes. */
export async function listQuotas(api: KubernetesApi, namespace: string, signal?: AbortSignal): Promise<readonly Quota[]> {
  const { items } = await api.list<QuotaObject>(`/api/v1/namespaces/${namespace}/resourcequotas`, {}, signal);
  return items
    .filter(({ spec = {} }) => spec.scopeSelector === undefined && (spec.scopes ?? []).every((scope) => OWN_SCOPES.has(scope)))
    .map(({ metadata, spec, status }) => ({ name: metadata.name, hard: status?.hard ?? spec?.hard ?? {}, used: status?.used ?? {} }));
}

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
export function needOf(resource: string, template: Pod): number {
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

export function amountOf(quantity: unknown): number {
  return quantityValue(String(quantity), "a quota");
}
