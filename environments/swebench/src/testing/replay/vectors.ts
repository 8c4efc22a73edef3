import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { isList, isObject, type Json, type JsonObject, PyError, readJson } from "@aenv/benchmark";

/** Reads a file of vectors: JSON lines, a list or one object; also compressed with gzip. */
export function readVectors(path: string): readonly Json[] {
  const bytes = readFileSync(path);
  const text = (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString("utf8");
  try {
    const whole = readJson(text);
    return isList(whole) ? whole : [whole];
  } catch (error) {
    if (!(error instanceof PyError)) throw error;
    return text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map(readLine);
  }
}

/** A line that is not JSON is kept as a text, which is not a vector. */
function readLine(line: string): Json {
  try {
    return readJson(line);
  } catch (error) {
    if (!(error instanceof PyError)) throw error;
    return line;
  }
}

export function textAt(record: JsonObject, key: string): string {
  const value = record.get(key);
  if (typeof value !== "string") throw new Error(`a vector has no string '${key}'`);
  return value;
}

export function objectAt(record: JsonObject, key: string): JsonObject {
  const value = record.get(key);
  if (!isObject(value)) throw new Error(`a vector has no object '${key}'`);
  return value;
}

/** JSON with objects as lists of members, so that a comparison sees their order. */
export function ordered(value: Json | undefined): unknown {
  if (isList(value)) return value.map(ordered);
  if (isObject(value)) return { members: [...value].map(([key, member]) => [key, ordered(member)]) };
  return value;
}

/** The result, or that the reference's rules raise. Any other error is a fault of this program. */
export function attempt(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    if (error instanceof PyError) return RAISED;
    return { crashed: String(error) };
  }
}

export const RAISED = { raised: true };

/** What a vector expects: that it raises, or an output. */
export function wanted(record: JsonObject, output: () => unknown): unknown {
  return record.has("error") ? RAISED : output();
}
