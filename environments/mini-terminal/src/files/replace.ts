export interface Replacement {
  readonly oldText: string;
  readonly newText: string;
  readonly isEverywhere: boolean;
}

/** Replaces an exact text, which must occur once unless all of its occurrences are replaced. */
export function replaceText(
  text: string,
  { oldText, newText, isEverywhere }: Replacement,
): { readonly text: string; readonly count: number } {
  const parts = text.split(oldText);
  const count = parts.length - 1;
  if (count === 0) throw new Error("old_text does not occur in the file; it must match exactly, also in spaces and line breaks");
  if (count > 1 && !isEverywhere)
    throw new Error(`old_text occurs ${count} times; add more of the text around it, or set replace_all to true`);
  return { text: parts.join(newText), count };
}
