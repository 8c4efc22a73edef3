import type { Json } from "../python/constants.ts";

export type Schema = { [key: string]: Json };

const SIMPLE = new Map<string, Schema>(
  Object.entries({
    str: { type: "string" },
    int: { type: "integer" },
    float: { type: "number" },
    bool: { type: "boolean" },
    None: { type: "null" },
    Any: {},
    object: {},
    list: { items: {}, type: "array" },
    dict: { additionalProperties: true, type: "object" },
    tuple: { items: {}, type: "array" },
    set: { items: {}, type: "array", uniqueItems: true },
    date: { format: "date", type: "string" },
    datetime: { format: "date-time", type: "string" },
    Decimal: { anyOf: [{ type: "number" }, { type: "string" }] },
  }),
);
const ALIASES = new Map(
  Object.entries({
    List: "list",
    Sequence: "list",
    Iterable: "list",
    Dict: "dict",
    Mapping: "dict",
    Tuple: "tuple",
    Set: "set",
  }),
);
/** Options of `Field` by the keywords of JSON Schema that they become. */
export const LIMITS = new Map(
  Object.entries({ ge: "minimum", gt: "exclusiveMinimum", le: "maximum", lt: "exclusiveMaximum", pattern: "pattern" }),
);

/** The schema of a type without parameters; null for another type. */
export function simpleSchema(type: string): Schema | null {
  return structuredClone(SIMPLE.get(genericName(type)) ?? null);
}

/** The built-in type that a name of `typing` stands for, such as `list` for `List`. */
export function genericName(type: string): string {
  return ALIASES.get(type) ?? type;
}

/** A value that is one of these. */
export function literal(values: readonly Json[]): Schema {
  const types = new Set(values.map((value) => (Number.isInteger(value) ? "integer" : value === null ? "null" : typeof value)));
  const type = types.size === 1 ? { type: [...types][0] as string } : {};
  return values.length === 1 ? { const: values[0] as Json, ...type } : { enum: [...values], ...type };
}

/** Whether the type is a reference, or a reference or null; such a field gets no title. */
export function isReference(type: Schema): boolean {
  const kinds = Array.isArray(type.anyOf) ? (type.anyOf as Schema[]).filter((kind) => kind.type !== "null") : [type];
  const isNullable = Array.isArray(type.anyOf) && kinds.length < type.anyOf.length;
  return "$ref" in type || (isNullable && kinds.length === 1 && kinds[0] !== undefined && "$ref" in kinds[0]);
}

/** `line_id` is "Line Id". */
export function titleOf(name: string): string {
  const words = name.replace(/\p{L}+/gu, (word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase());
  return words.replaceAll("_", " ").trim();
}

/** Sorts keys, except the properties of objects, which keep the source's order. */
export function sorted(schema: Schema, keepsOrder = false): Schema {
  const entries = Object.entries(schema).map(([key, value]): [string, Json] => {
    if (key === "default" && !keepsOrder) return [key, value];
    return [key, sortedValue(value, key === "properties" && !keepsOrder)];
  });
  if (!keepsOrder) entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries);
}

function sortedValue(value: Json, keepsOrder: boolean): Json {
  if (Array.isArray(value)) return value.map((item) => sortedValue(item, false));
  return value !== null && typeof value === "object" ? sorted(value, keepsOrder) : value;
}
