import { PyError, parseJson } from "@aenv/benchmark";
import { Dict, PyFloat, type PyInt, type PyValue, toInt } from "../values/values.ts";

const TYPES = {
  int: (digits: string): PyInt => (digits.length < 16 ? Number(digits) + 0 : toInt(BigInt(digits))),
  float: (value: number) => new PyFloat(value),
  members: () => new Dict(),
};

/** `json.loads`. Raises Python's errors. */
export function readJson(text: string): PyValue {
  return parseJson<PyInt | PyFloat, Dict>(text, TYPES);
}

/** The value of a text, or the fallback if it is not JSON. */
export function readJsonOr<Fallback>(text: string, fallback: Fallback): PyValue | Fallback {
  try {
    return readJson(text);
  } catch (error) {
    if (error instanceof PyError) return fallback;
    throw error;
  }
}
