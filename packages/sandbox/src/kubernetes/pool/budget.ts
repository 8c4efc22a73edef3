import type { Pod } from "../pod/types.ts";
import { amountOf, needOf, type Quota } from "../quota.ts";

/** Waiting pods take at most this part of what the quotas leave beside sandboxes, so that pods of other kinds find room. */
const SHARE = 0.5;
/** Amounts such as 0.1 processors do not add up exactly. */
const ROUNDING = 1e-6;

/** The quotas of a namespace, and what was known of its pods when they were read. */
export interface SeenQuotas {
  readonly quotas: readonly Quota[];
  readonly pods: readonly Pod[];
}

/** How many pods may wait, by the quotas of the namespace. */
export class QuotaBudget {
  readonly #left: { readonly resource: string; amount: number }[] = [];

  /** `sandboxes`: the pods that do not wait, as they are now. */
  constructor({ quotas, pods }: SeenQuotas, sandboxes: readonly Pod[]) {
    for (const { hard, used } of quotas) {
      for (const [resource, limit] of Object.entries(hard)) {
        const others = Math.max(0, amountOf(used[resource] ?? "0") - needs(resource, pods));
        this.#left.push({ resource, amount: (amountOf(limit) - others - needs(resource, sandboxes)) * SHARE });
      }
    }
  }

  /** Takes the room for one such pod; false if there is none. */
  take(pod: Pod): boolean {
    const needed = this.#left.map((left) => ({ left, need: needOf(left.resource, pod) })).filter(({ need }) => need > 0);
    if (needed.some(({ left, need }) => left.amount < need * (1 - ROUNDING))) return false;
    for (const { left, need } of needed) left.amount -= need;
    return true;
  }
}

function needs(resource: string, pods: readonly Pod[]): number {
  return pods.reduce((sum, pod) => sum + needOf(resource, pod), 0);
}
