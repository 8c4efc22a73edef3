/** A stock of processes that wait to be claimed, and how many it would hold if there were no limits. */
export interface WarmDemand {
  readonly name: string;
  /** Whose environment the processes have loaded; null for blank ones, which belong to the platform. */
  readonly owner: string | null;
  /** What is likely to be claimed while one is being replaced. */
  readonly demanded: number;
  /** What is to wait beyond that, in demand or not. */
  readonly reserve: number;
  /** How many were lately claimed together, as forks are: as many are to wait for the next such claim. */
  readonly burst: number;
}

export interface PoolLimits {
  /** Of one stock, but for bursts, which only the owner's limit bounds. */
  readonly each: number;
  readonly perOwner: number;
  readonly total: number;
}

/**
 * How many processes each stock may hold. Blank reserves come first, because any environment can use those; then demand, then bursts,
 * then the reserves of environments. Within a step the stocks get one process each in turn, so that no stock takes what all of them need.
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
