export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The quantile of the values, with linear interpolation. */
export function quantile(values: readonly number[], share: number): number {
  if (values.length === 0) throw new RangeError("a quantile needs at least one value");
  if (!(share >= 0 && share <= 1)) throw new RangeError(`a quantile's share is ${share}; it must be from 0 to 1`);
  const sorted = Float64Array.from(values).sort();
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)] as number;
  const above = sorted[Math.ceil(at)] as number;
  return below === above ? below : below + (above - below) * (at - Math.floor(at));
}
