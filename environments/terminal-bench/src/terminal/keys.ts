/** Keys by the names that tmux has for them. */
const KEYS: Readonly<Record<string, string>> = {
  Enter: "\r",
  Tab: "\t",
  BTab: "\x1b[Z",
  Space: " ",
  Escape: "\x1b",
  BSpace: "\x7f",
  Up: "\x1b[A",
  Down: "\x1b[B",
  Right: "\x1b[C",
  Left: "\x1b[D",
  Home: "\x1b[H",
  End: "\x1b[F",
  IC: "\x1b[2~",
  DC: "\x1b[3~",
  PageUp: "\x1b[5~",
  PPage: "\x1b[5~",
  PageDown: "\x1b[6~",
  NPage: "\x1b[6~",
  F1: "\x1bOP",
  F2: "\x1bOQ",
  F3: "\x1bOR",
  F4: "\x1bOS",
};

/** What a terminal receives: the whole text is the name of a key, such as `C-c`, `M-x` or `Enter`, or it is typed as it is. */
export function typed(text: string): string {
  const named = KEYS[text];
  if (named !== undefined) return named;
  const [, modifier, key = ""] = /^(C|\^|M)-?(.+)$/su.exec(text) ?? [];
  if (modifier === undefined || (modifier !== "^" && !/^[CM]-/.test(text))) return text;
  if (modifier === "M") return [...key].length === 1 || key in KEYS ? `\x1b${typed(key)}` : text;
  return /^[@-_a-z]$/.test(key) ? String.fromCharCode(key.toUpperCase().charCodeAt(0) & 0x1f) : text;
}
