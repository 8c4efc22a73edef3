/** A result that takes space, in no particular order. */
export interface KeptResult {
  readonly key: string;
  readonly owner: string;
  /** When its rollout was done. */
  readonly at: string;
  readonly bytes: number;
}

export interface ResultLimits {
  /** Most bytes of all results together. */
  readonly maxBytes: number;
  /** Most bytes of the results of one owner. */
  readonly maxBytesPerOwner: number;
}

/**
 * The results to remove: the oldest of each owner above its limit. If all together are too large, owners with the most bytes give way
 * down to the same size, so an owner with less than its share of the space loses nothing to the others.
 */
export function evictions(results: readonly KeptResult[], { maxBytes, maxBytesPerOwner }: ResultLimits): KeptResult[] {
  const byOwner = Map.groupBy(results, ({ owner }) => owner);
  const used = [...byOwner.values()].map((own) => Math.min(bytesOf(own), maxBytesPerOwner));
  const limit = Math.min(maxBytesPerOwner, levelOf(used, maxBytes));
  const evicted: KeptResult[] = [];
  for (const own of byOwner.values()) {
    let bytes = bytesOf(own);
    if (bytes <= limit) continue;
    for (const one of own.toSorted((a, b) => a.at.localeCompare(b.at))) {
      if (bytes <= limit) break;
      evicted.push(one);
      bytes -= one.bytes;
    }
  }
  return evicted;
}

/** The largest limit for each owner with which all owners together keep to the maximum. */
function levelOf(used: readonly number[], max: number): number {
  let left = max;
  const ascending = used.toSorted((a, b) => a - b);
  for (const [at, bytes] of ascending.entries()) {
    const share = left / (ascending.length - at);
    if (bytes > share) return share;
    left -= bytes;
  }
  return Number.POSITIVE_INFINITY;
}

function bytesOf(results: readonly KeptResult[]): number {
  return results.reduce((sum, { bytes }) => sum + bytes, 0);
}
