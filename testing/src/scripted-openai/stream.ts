/** A text in pieces of a few characters, as a model streams it; none for an empty text. */
export function pieces(text: string, size = 7): string[] {
  const letters = [...text];
  const cut: string[] = [];
  for (let at = 0; at < letters.length; at += size) cut.push(letters.slice(at, at + size).join(""));
  return cut;
}
