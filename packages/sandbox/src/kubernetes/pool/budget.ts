import type { Pod } from "../pod/types.ts";
import { amountOf, needOf, type Quota } from "../quota.ts";

/** Waiting pods take at most this part of what the quotas leave beside sandboxes, so that pods of other kinds find room. */
const SHARE = 0.5;

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

  /** How many of the wanted pods there is room for. They are taken off the budget. */
  take(pod: Pod, wanted: number): number {
    let count = wanted;
    for (const { resource, amount } of this.#left) {
      const need = needOf(resource, pod);
      if (need > 0) count = Math.max(0, Math.min(count, Math.floor(amount / need)));
    }
    for (const left of this.#left) left.amount -= count * needOf(left.resource, pod);
    return count;
  }
}

function needs(resource: string, pods: readonly Pod[]): number {
  return pods.reduce((sum, pod) => sum + needOf(resource, pod), 0);
}
