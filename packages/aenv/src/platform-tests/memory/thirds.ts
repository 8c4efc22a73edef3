/** The medians of the first, middle and last third: a single sample may fall into a burst of work. */
export function mediansOfThirds(values: readonly number[]): readonly [first: number, middle: number, last: number] {
  if (values.length < 3) throw new RangeError(`${values.length} samples have no thirds`);
  const third = (n: number) => median(values.slice(Math.round((n * values.length) / 3), Math.round(((n + 1) * values.length) / 3)));
  return [third(0), third(1), third(2)];
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const [low = 0, high = low] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.ceil((sorted.length - 1) / 2)]];
  return (low + high) / 2;
}
