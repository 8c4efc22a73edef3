/** `fnmatch.fnmatchcase`: `*` also matches `/`. */
export function fnmatch(name: string, pattern: string): boolean {
  return new RegExp(`^${expressionOf([...pattern])}$`, "su").test(name);
}

function expressionOf(letters: readonly string[]): string {
  let out = "";
  for (let i = 0; i < letters.length; i++) {
    const letter = letters[i] ?? "";
    if (letter === "*") out += ".*";
    else if (letter === "?") out += ".";
    else if (letter === "[") {
      const end = classEnd(letters, i);
      if (end < 0) out += "\\[";
      else {
        out += classOf(letters.slice(i + 1, end));
        i = end;
      }
    } else out += letter.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  }
  return out;
}

/** Where `[abc]` ends; a `]` at its start belongs to it. */
function classEnd(letters: readonly string[], start: number): number {
  let at = start + 1;
  if (letters[at] === "!") at++;
  if (letters[at] === "]") at++;
  return letters.indexOf("]", at);
}

function classOf(letters: readonly string[]): string {
  const isNegated = letters[0] === "!";
  const inner = isNegated ? letters.slice(1) : letters;
  const parts: string[] = [];
  for (let i = 0; i < inner.length; i++) {
    const [from = "", dash, to] = inner.slice(i, i + 3);
    if (dash === "-" && to !== undefined) {
      // A range from a later to an earlier letter is empty.
      if (from <= to) parts.push(`${classLetter(from)}-${classLetter(to)}`);
      i += 2;
    } else parts.push(classLetter(from));
  }
  if (parts.length === 0) return isNegated ? "." : "(?!)";
  return `[${isNegated ? "^" : ""}${parts.join("")}]`;
}

function classLetter(letter: string): string {
  return letter.replace(/[\\[\]^&-]/g, "\\$&");
}
