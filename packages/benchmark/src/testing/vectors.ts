import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { PyError } from "../python/errors.ts";

/**
 * Reads a file of vectors: one value of JSON, or JSON lines; also compressed with gzip. `readJson` throws a PyError or a SyntaxError for
 * other text. A line that is not JSON is kept as a text, which is not a vector.
 */
export function readVectors<Value>(path: string, readJson: (text: string) => Value): readonly (Value | string)[] {
  const bytes = readFileSync(path);
  const text = (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString("utf8");
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const read = (one: string): Value | string => orText(one, readJson);
  const [first = ""] = lines;
  const whole = lines.length > 1 && read(first) !== first ? text : read(text);
  return whole === text ? lines.map(read) : [whole];
}

function orText<Value>(text: string, readJson: (text: string) => Value): Value | string {
  try {
    return readJson(text);
  } catch (error) {
    if (error instanceof PyError || error instanceof SyntaxError) return text;
    throw error;
  }
}

/** A text among the members of a vector, whose files are not checked otherwise. */
export function textAt(record: ReadonlyMap<unknown, unknown> | Readonly<Record<string, unknown>>, key: string): string {
  const value = record instanceof Map ? record.get(key) : (record as Readonly<Record<string, unknown>>)[key];
  if (typeof value !== "string") throw new Error(`a vector has no string '${key}'`);
  return value;
}
