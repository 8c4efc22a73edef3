/** How a value is written: as a text, or as brackets around its parts. Each part has a text before its value, such as a key. */
export type JsonShape<Value> =
  | string
  | { readonly open: "[" | "{"; readonly close: "]" | "}"; readonly parts: readonly (readonly [before: string, value: Value])[] };

/** `json.dumps`, on one line or with `indent` spaces per level. */
export function layOutJson<Value>(value: Value, shapeOf: (value: Value) => JsonShape<Value>, indent?: number, newline = "\n"): string {
  const shape = shapeOf(value);
  if (typeof shape === "string") return shape;
  const { open, close, parts } = shape;
  if (parts.length === 0) return open + close;
  const inner = indent === undefined ? newline : newline + " ".repeat(indent);
  const texts = parts.map(([before, one]) => before + layOutJson(one, shapeOf, indent, inner));
  return indent === undefined ? open + texts.join(", ") + close : open + inner + texts.join(`,${inner}`) + newline + close;
}

/** `json.dumps(value, indent=...)` of plain data: ASCII only. A map keeps the order of keys such as "10", which an object does not. */
export function writeJson(value: unknown, indent: number): string {
  return layOutJson(value, plainShape, indent);
}

function plainShape(value: unknown): JsonShape<unknown> {
  if (typeof value === "string") return quoteJson(value);
  if (value === null || typeof value !== "object") return String(value);
  if (Array.isArray(value)) return { open: "[", close: "]", parts: value.map((item) => ["", item]) };
  const members: readonly [unknown, unknown][] = value instanceof Map ? [...value] : Object.entries(value);
  return { open: "{", close: "}", parts: members.map(([key, member]) => [`${quoteJson(String(key))}: `, member]) };
}

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\b": "\\b",
  "\f": "\\f",
};

/** A JSON string in ASCII; other characters are escaped by UTF-16 unit. */
export function quoteJson(text: string): string {
  if (!/[^ !#-[\]-~]/.test(text)) return `"${text}"`;
  return `"${text.replace(/[^ !#-[\]-~]/g, (unit) => SHORT[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)}"`;
}
