import { PlatformError } from "./errors.ts";

/** Deeper values are refused: no request needs them, and each level takes stack. */
const MAX_DEPTH = 100;

/** JSON with sorted keys and no spaces: equal values always give equal text. */
export function canonicalJson(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) throw new PlatformError("request.invalid", `the JSON is nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null, depth + 1)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field, depth + 1)}`);
  return `{${fields.join(",")}}`;
}
