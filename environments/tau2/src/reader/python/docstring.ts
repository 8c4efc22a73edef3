export interface Docstring {
  summary: string;
  details: string;
  /** Description by parameter. */
  parameters: Map<string, string>;
  returns: string | null;
  raises: { type: string; text: string }[];
}

const ARGUMENTS = ["Arguments", "Args", "Parameters", "Params", "Attributes"];
const RAISES = ["Raises", "Exceptions", "Except"];
const SINGLE = ["Example", "Examples", "Returns", "Yields"];
const TITLE = new RegExp(`^(${[...ARGUMENTS, ...RAISES, ...SINGLE].join("|")}):[ \\t]*$`, "gm");

/** Parses a docstring in Google style. If a section is malformed, the whole text is the description. */
export function readDocstring(text: string): Docstring {
  const clean = cleanIndent(text);
  const titles = [...clean.matchAll(TITLE)];
  const head = describe(clean.slice(0, titles[0]?.index ?? clean.length));
  const found: Docstring = { ...head, parameters: new Map(), returns: null, raises: [] };
  for (const [index, title] of titles.entries()) {
    const name = title[1] as string;
    const body = trimNewlines(clean.slice(title.index + title[0].length, titles[index + 1]?.index ?? clean.length));
    if (body === "") continue;
    if (SINGLE.includes(name)) {
      if (name === "Returns") found.returns = withoutType(cleanIndent(body));
      continue;
    }
    const items = itemsOf(body);
    if (!items) return { ...describe(clean), parameters: new Map(), returns: null, raises: [] };
    for (const [label, description] of items) {
      if (RAISES.includes(name)) found.raises.push({ type: label, text: description });
      else if (!found.parameters.has(nameOf(label))) found.parameters.set(nameOf(label), description);
    }
  }
  return found;
}

/** The first line is the summary, even if its sentence continues on the next line. */
function describe(text: string): { summary: string; details: string } {
  const end = text.indexOf("\n");
  return end < 0 ? { summary: text, details: "" } : { summary: text.slice(0, end), details: text.slice(end + 1).trim() };
}

/** The `label: description` items, at the first one's indentation; null if one has no colon. */
function itemsOf(body: string): [string, string][] | null {
  const indent = /^\s*/.exec(body)?.[0] ?? "";
  const items: string[] = [];
  for (const line of body.split("\n")) {
    if (line.startsWith(indent) && /^\S/.test(line.slice(indent.length))) items.push(line.slice(indent.length));
    else if (items.length > 0) items.push(`${items.pop()}\n${line}`);
  }
  const pairs: [string, string][] = [];
  for (const item of items.map(trimNewlines)) {
    const colon = item.indexOf(":");
    if (colon < 0) return null;
    pairs.push([item.slice(0, colon), continued(item.slice(colon + 1))]);
  }
  return pairs;
}

/** Removes the common indentation of the lines after an item's first. */
function continued(text: string): string {
  const trimmed = text.startsWith(" ") ? text.slice(1) : text;
  const end = trimmed.indexOf("\n");
  return trimNewlines(end < 0 ? trimmed : `${trimmed.slice(0, end)}\n${cleanIndent(trimmed.slice(end + 1))}`);
}

/** `limit (int, optional)` describes `limit`. */
function nameOf(label: string): string {
  return /^\s*(.+?)\s*\(.*\S.*\)/.exec(label)?.[1] ?? label.trim();
}

/** `str: The answer.` describes the answer. */
function withoutType(text: string): string {
  return /^\s*[^:\s]+:|^[^:]*\]:/.test(text) ? continued(text.slice(text.indexOf(":") + 1)) : text;
}

function trimNewlines(text: string): string {
  return text.replace(/^\n+|\n+$/g, "");
}

/** Removes the common indentation of all lines but the first, and surrounding blank lines. */
export function cleanIndent(text: string): string {
  const [first = "", ...rest] = text.split("\n").map(expandTabs);
  const widths = rest.filter((line) => line.trim() !== "").map((line) => line.length - line.trimStart().length);
  const margin = widths.length > 0 ? Math.min(...widths) : 0;
  const lines = [first.trimStart(), ...rest.map((line) => line.slice(margin))];
  while (lines.length > 0 && lines.at(-1) === "") lines.pop();
  while (lines.length > 0 && lines[0] === "") lines.shift();
  return lines.join("\n");
}

function expandTabs(line: string): string {
  let expanded = "";
  for (const character of line) expanded += character === "\t" ? " ".repeat(8 - (expanded.length % 8)) : character;
  return expanded;
}
