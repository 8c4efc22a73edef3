import { type JsonOf, MAX_DIGITS, parseJson, valueError } from "@aenv/benchmark";

type Value = JsonOf<number | bigint, Map<string, Value>>;

const TYPES = { int: toInt, float: (value: number) => value, members: () => new Map<string, Value>() };

/** `json.loads`: whole numbers are bigints, as those of TOML here, and objects are tables. Throws a PyError. */
export function readJson(text: string): unknown {
  return tablesOf(parseJson<number | bigint, Map<string, Value>>(text, TYPES));
}

function tablesOf(value: Value): unknown {
  if (Array.isArray(value)) return value.map(tablesOf);
  return value instanceof Map ? Object.fromEntries([...value].map(([key, member]) => [key, tablesOf(member)])) : value;
}

function toInt(digits: string): bigint {
  if (digits.length > MAX_DIGITS) throw valueError(`an integer of ${digits.length} digits is too long`);
  return BigInt(digits);
}
