/** A mean with its 95 % interval; the interval is null where there are too few values for one. */
export interface MeanWithInterval {
  readonly mean: number;
  readonly low: number | null;
  readonly high: number | null;
}

/**
 * The mean of all values, with an interval that respects groups: samples of one task are alike, so the error is computed from the
 * sums of the groups (the cluster-robust standard error), with Student's t for the number of groups. With one value a group it is
 * the ordinary interval of the mean.
 */
export function meanOfGroups(groups: readonly (readonly number[])[]): MeanWithInterval | null {
  const filled = groups.filter((group) => group.length > 0);
  const count = filled.reduce((sum, group) => sum + group.length, 0);
  if (count === 0) return null;
  const mean = filled.reduce((sum, group) => sum + total(group), 0) / count;
  if (filled.length < 2) return { mean, low: null, high: null };
  const squares = filled.reduce((sum, group) => sum + (total(group) - group.length * mean) ** 2, 0);
  // The usual correction for a small number of groups: G / (G - 1).
  const error = Math.sqrt((squares * filled.length) / (filled.length - 1)) / count;
  const margin = quantileOfT(filled.length - 1) * error;
  return { mean, low: mean - margin, high: mean + margin };
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

/** The 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom. */
const T = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086,
  2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
] as const;
const Z = 1.959_964;

function quantileOfT(degrees: number): number {
  // Beyond the table, two terms of the Cornish-Fisher expansion are exact to three decimals.
  return T[degrees - 1] ?? Z + (Z ** 3 + Z) / (4 * degrees) + (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / (96 * degrees ** 2);
}
