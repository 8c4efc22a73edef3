/** Largest request of one rollout. */
export const MAX_REQUEST_BYTES = 4 * 1024 ** 2;
const SMALLEST = 1_024;

/**
 * The size of a request, rounded up by less than a quarter. Rows are counted by it: the sum of an owner's requests then follows from the
 * rows themselves, so no crash and no other server can make it wrong.
 */
export function sizeClassOf(bytes: number): number {
  if (bytes <= SMALLEST) return SMALLEST;
  const step = 2 ** (Math.floor(Math.log2(bytes)) - 2);
  return Math.ceil(bytes / step) * step;
}

export function sizeIndex(owner: string, sizeClass: number): string {
  return `${owner}/${sizeClass}`;
}

/** All classes of requests that are accepted, the smallest first. */
export const sizeClasses: readonly number[] = classes();

function classes(): number[] {
  const all = [SMALLEST];
  for (let last = SMALLEST; last < MAX_REQUEST_BYTES; all.push(last)) last = sizeClassOf(last + 1);
  return all;
}
