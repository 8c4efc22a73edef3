import type { Budget, Share } from "@aenv/sandbox";

/** How many processes a warm set would hold without limits. */
export interface WarmDemand {
  readonly name: string;
  /** Owner of the loaded environment; null for blank processes, which belong to the platform. */
  readonly owner: string | null;
  /** Expected claims while one process is being replaced. */
  readonly demanded: number;
  /** Kept ready in addition, with or without demand. */
  readonly reserve: number;
  /** Recent number of claims made together, as for forks: as many are kept ready for the next such claim. */
  readonly burst: number;
}

export interface PoolLimits {
  /** The limit of one set. Bursts are limited by the owner's limit only. */
  readonly each: number;
  readonly perOwner: number;
  readonly total: number;
}

/**
 * Reserves of blank processes come first, because any environment can use those; then demand, then bursts, then the reserves of
 * environments.
 */
export function stepsOf(demands: readonly WarmDemand[], each: number): Share[][] {
  const blank = demands.filter(({ owner }) => owner === null);
  return [
    blank.map(({ name, reserve }) => ({ name, upTo: Math.min(each, reserve) })),
    demands.map(({ name, owner, demanded, reserve }) => ({ name, upTo: Math.min(each, owner === null ? reserve + demanded : demanded) })),
    demands.map(({ name, burst }) => ({ name, upTo: burst })),
    demands.map(({ name, demanded, reserve }) => ({ name, upTo: Math.min(each, demanded + reserve) })),
  ];
}

/** Capacity for processes of all owners together, and of each owner. */
export function budgetOf({ perOwner, total }: PoolLimits, ownerOf: (name: string) => string | null): Budget {
  const ofOwner = new Map<string, number>();
  let left = total;
  return (name) => {
    if (left === 0) return false;
    const owner = ownerOf(name);
    if (owner !== null) {
      const count = ofOwner.get(owner) ?? 0;
      if (count >= perOwner) return false;
      ofOwner.set(owner, count + 1);
    }
    left--;
    return true;
  };
}
