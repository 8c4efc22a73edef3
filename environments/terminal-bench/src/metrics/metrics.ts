import { compareText } from "@aenv/benchmark";

export type MetricType = "mean" | "sum" | "min" | "max";
export type RewardMap = Readonly<Record<string, number>>;

const combine: Readonly<Record<MetricType, (values: readonly number[]) => number>> = {
  mean: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
};

/** A metric over the rewards of all trials; null is a trial without rewards. With several keys there is one value for each. */
export function metric(type: MetricType, rewards: readonly (RewardMap | null)[]): Record<string, number> {
  if (rewards.length === 0) return {};
  const keys = [...new Set(rewards.flatMap((map) => Object.keys(map ?? {})))].sort(compareText);
  if (keys.length <= 1) return { [type]: combine[type](rewards.map((map) => Object.values(map ?? {})[0] ?? 0)) };
  return Object.fromEntries(keys.map((key) => [key, combine[type](rewards.map((map) => map?.[key] ?? 0))]));
}
