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

export function mean(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError("a mean needs at least one value");
  return values.reduce((sum, one) => sum + one, 0) / values.length;
}

/**
 * The standard error of the mean of values that were measured at evenly spread points of a circle, in their order. Only differences between
 * neighbours count: what depends on the point itself is averaged by the spread and is no error.
 */
export function errorOfMean(values: readonly number[]): number {
  if (values.length < 2) throw new RangeError("a standard error needs at least two values");
  const squares = values.map((one, n) => (one - (values[(n + 1) % values.length] as number)) ** 2);
  return Math.sqrt(mean(squares) / 2 / values.length);
}
