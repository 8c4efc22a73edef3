/**
 * The known name that is most similar to a given one, or null if none is similar. Case, `_` and `-` do not count as a difference;
 * otherwise one mistake is allowed per three characters: a character too many, missing, wrong, or swapped with its neighbour.
 */
export function nearestName(given: string, known: Iterable<string>): string | null {
  // A longer text is not a mistyped name, and comparing it would be slow.
  if (given.length > MAX_LENGTH) return null;
  const plain = plainName(given);
  const limit = Math.floor(plain.length / 3);
  let nearest: string | null = null;
  let least = limit + 1;
  for (const name of known) {
    const other = plainName(name);
    if (Math.abs(other.length - plain.length) >= least) continue;
    const distance = editDistance(plain, other);
    if (distance < least) {
      nearest = name;
      least = distance;
    }
  }
  return nearest;
}

const MAX_LENGTH = 64;

function plainName(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, "");
}

/** Insertions, deletions, substitutions and swaps of neighbours that turn one text into the other. */
function editDistance(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const cost = one[i - 1] === other[j - 1] ? 0 : 1;
      let least = Math.min((row[j - 1] ?? 0) + 1, (last[j] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (isSwap) least = Math.min(least, (beforeLast[j - 2] ?? 0) + 1);
      row.push(least);
    }
    beforeLast = last;
    last = row;
  }
  return last[other.length] ?? 0;
}
