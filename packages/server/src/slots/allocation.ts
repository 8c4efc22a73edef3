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
  /** Of one set. Bursts are limited by the owner's limit only. */
  readonly each: number;
  readonly perOwner: number;
  readonly total: number;
}

/**
 * How many processes each set may hold. Reserves of blank processes come first, because any environment can use those; then demand, then
 * bursts, then the reserves of environments. Within a step the sets get one process each in turn, so that no set takes the whole limit.
 */
export function allocate(demands: readonly WarmDemand[], { each, perOwner, total }: PoolLimits): Map<string, number> {
  const given = new Map(demands.map(({ name }) => [name, 0]));
  const ofOwner = new Map<string, number>();
  let left = total;

  const giveOne = ({ name, owner }: WarmDemand, upTo: number): boolean => {
    const has = given.get(name) ?? 0;
    if (left === 0 || has >= upTo) return false;
    if (owner !== null) {
      const count = ofOwner.get(owner) ?? 0;
      if (count >= perOwner) return false;
      ofOwner.set(owner, count + 1);
    }
    given.set(name, has + 1);
    left--;
    return true;
  };
  const giveAll = (to: readonly WarmDemand[], upTo: (demand: WarmDemand) => number) => {
    let isAnyGiven = true;
    while (isAnyGiven) {
      isAnyGiven = false;
      for (const demand of to) if (giveOne(demand, upTo(demand))) isAnyGiven = true;
    }
  };

  giveAll(
    demands.filter(({ owner }) => owner === null),
    ({ reserve }) => Math.min(each, reserve),
  );
  giveAll(demands, ({ owner, demanded, reserve }) => Math.min(each, owner === null ? reserve + demanded : demanded));
  giveAll(demands, ({ burst }) => burst);
  giveAll(demands, ({ demanded, reserve }) => Math.min(each, demanded + reserve));
  return given;
}
