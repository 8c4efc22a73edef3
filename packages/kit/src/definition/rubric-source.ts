const sources = new WeakMap<object, string>();

/** Stores what a ready-made `score` function was made from: two of them with other options have the same code. */
export function rememberRubric<T extends object>(score: T, source: string): T {
  sources.set(score, source);
  return score;
}

/** The code of a `score` function, with the options of a ready-made one. */
export function sourceOf(score: object): string {
  const options = sources.get(score);
  return options === undefined ? String(score) : `${String(score)}\n${options}`;
}
