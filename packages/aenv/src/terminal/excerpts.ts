const BEFORE = 40;
const LENGTH = 100;

/** The parts of two texts around their first difference, short enough for a line. */
export function excerpts(one: string, other: string): [string, string] {
  let same = 0;
  while (same < one.length && one[same] === other[same]) same++;
  const from = one.length <= LENGTH && other.length <= LENGTH ? 0 : Math.max(0, same - BEFORE);
  return [excerpt(one, from), excerpt(other, from)];
}

function excerpt(text: string, from: number): string {
  const end = from + LENGTH;
  return `${from > 0 ? "…" : ""}${text.slice(from, end)}${end < text.length ? "…" : ""}`;
}
