import { isObject, type JsonSchema } from "@aenv/contract";

/** A source of numbers in [0, 1) that gives the same numbers for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Random = () => number;
const MAX_DEPTH = 6;
const WORDS = ["alpha", "beta", "gamma", "delta", "one", "two", "yes", "no", "", "0", "42"] as const;

/** A value that fits a JSON Schema, as far as the schema uses the ordinary keywords; others are ignored. */
export function randomValue(schema: unknown, random: Random, root: unknown = schema, depth = 0): unknown {
  const resolved = resolve(schema, root);
  if (!isObject(resolved) || depth > MAX_DEPTH) return null;
  if ("const" in resolved) return resolved.const;
  if (Array.isArray(resolved.enum) && resolved.enum.length > 0) return pick(resolved.enum, random);
  const choices = [resolved.anyOf, resolved.oneOf].find(Array.isArray);
  if (choices !== undefined && choices.length > 0) return randomValue(pick(choices, random), random, root, depth + 1);
  const type = Array.isArray(resolved.type) ? pick(resolved.type, random) : resolved.type;
  switch (type ?? (isObject(resolved.properties) ? "object" : "string")) {
    case "object":
      return randomObject(resolved, random, root, depth);
    case "array":
      return randomArray(resolved, random, root, depth);
    case "integer":
      return Math.round(randomNumber(resolved, random));
    case "number":
      return randomNumber(resolved, random);
    case "boolean":
      return random() < 0.5;
    case "null":
      return null;
    default:
      return randomText(resolved, random);
  }
}

/** Every required property, and each optional one half of the time. */
function randomObject(schema: JsonSchema, random: Random, root: unknown, depth: number): Record<string, unknown> {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const value: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties)) {
    if (required.has(name) || random() < 0.5) value[name] = randomValue(property, random, root, depth + 1);
  }
  return value;
}

function randomArray(schema: JsonSchema, random: Random, root: unknown, depth: number): unknown[] {
  const least = countOf(schema.minItems, 0);
  const length = between(least, Math.max(least, countOf(schema.maxItems, least + 3)), random);
  return Array.from({ length }, () => randomValue(schema.items ?? {}, random, root, depth + 1));
}

function randomNumber(schema: JsonSchema, random: Random): number {
  const low = numberOf(schema.minimum) ?? (numberOf(schema.exclusiveMinimum) ?? -1) + 1;
  const high = numberOf(schema.maximum) ?? (numberOf(schema.exclusiveMaximum) ?? low + 11) - 1;
  const step = numberOf(schema.multipleOf) ?? 1;
  const steps = Math.max(0, Math.floor((high - low) / step));
  return low + step * between(0, steps, random);
}

function randomText(schema: JsonSchema, random: Random): string {
  const least = countOf(schema.minLength, 0);
  const most = countOf(schema.maxLength, Number.POSITIVE_INFINITY);
  const word = pick(WORDS, random);
  return word.padEnd(least, "x").slice(0, most);
}

function resolve(schema: unknown, root: unknown): unknown {
  if (!isObject(schema) || typeof schema.$ref !== "string" || !schema.$ref.startsWith("#/")) return schema;
  const path = schema.$ref.slice(2).split("/");
  return path.reduce<unknown>((at, key) => (isObject(at) ? at[key.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined), root);
}

export function pick<T>(values: readonly T[], random: Random): T {
  return values[Math.floor(random() * values.length)] as T;
}

function between(low: number, high: number, random: Random): number {
  return low + Math.floor(random() * (high - low + 1));
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

function countOf(value: unknown, otherwise: number): number {
  return numberOf(value) ?? otherwise;
}
