/** What the reports consist of. A map keeps the order of keys such as "10", which an object does not. */
export type Writable =
  | null
  | boolean
  | number
  | string
  | readonly Writable[]
  | ReadonlyMap<string, Writable>
  | { readonly [key: string]: Writable | undefined };

/** `json.dumps(value, indent=...)`: ASCII only, members that are undefined are left out. */
export function writeJson(value: Writable, indent: number, depth = 0): string {
  if (value === null || typeof value !== "object") return scalar(value);
  const margin = `\n${" ".repeat(indent * (depth + 1))}`;
  const end = `\n${" ".repeat(indent * depth)}`;
  if (isList(value)) {
    if (value.length === 0) return "[]";
    return `[${value.map((item) => margin + writeJson(item, indent, depth + 1)).join(",")}${end}]`;
  }
  const members: string[] = [];
  for (const [key, member] of value instanceof Map ? value : Object.entries(value)) {
    if (member !== undefined) members.push(`${margin}${quote(key)}: ${writeJson(member, indent, depth + 1)}`);
  }
  return members.length === 0 ? "{}" : `{${members.join(",")}${end}}`;
}

function isList(value: Writable): value is readonly Writable[] {
  return Array.isArray(value);
}

function scalar(value: null | boolean | number | string): string {
  return typeof value === "string" ? quote(value) : String(value);
}

function quote(text: string): string {
  return JSON.stringify(text).replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
