import { isList, isObject, type Json, type JsonObject, PyError } from "@aenv/benchmark";

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

const RAISED = { raised: true };

/** What a vector expects: that it raises, or an output. */
export function wanted(record: JsonObject, output: () => unknown): unknown {
  return record.has("error") ? RAISED : output();
}
