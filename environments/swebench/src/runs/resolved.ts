import { decodeStrict, isList, isObject, type Json, PyError, readJson, universalNewlines } from "@aenv/benchmark";

/** What a `report.json` says about an instance; null if it cannot be read or says nothing. */
export function readResolved(file: Uint8Array, instanceId: string): boolean | null {
  try {
    const report = readJson(universalNewlines(decodeStrict(file, "report.json")));
    const entry = isObject(report) ? report.get(instanceId) : undefined;
    const resolved = isObject(entry) ? entry.get("resolved") : undefined;
    return resolved === undefined ? null : isTruthy(resolved);
  } catch (error) {
    if (error instanceof PyError) return null;
    throw error;
  }
}

/** `bool(value)` of Python. */
function isTruthy(value: Json): boolean {
  if (isList(value)) return value.length > 0;
  if (isObject(value)) return value.size > 0;
  return value !== null && value !== false && value !== 0 && value !== "";
}
