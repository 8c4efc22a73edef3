/** `json.dumps(value, indent=...)` of plain data: ASCII only. A map keeps the order of keys such as "10", which an object does not. */
export function writeJson(value: unknown, indent: number, depth = 0): string {
  if (typeof value === "string") return quote(value);
  if (value === null || typeof value !== "object") return String(value);
  const margin = `\n${" ".repeat(indent * (depth + 1))}`;
  const end = `\n${" ".repeat(indent * depth)}`;
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    return `[${value.map((item) => margin + writeJson(item, indent, depth + 1)).join(",")}${end}]`;
  }
  const members: string[] = [];
  for (const [key, member] of value instanceof Map ? value : Object.entries(value)) {
    members.push(`${margin}${quote(String(key))}: ${writeJson(member, indent, depth + 1)}`);
  }
  return members.length === 0 ? "{}" : `{${members.join(",")}${end}}`;
}

function quote(text: string): string {
  return JSON.stringify(text).replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
