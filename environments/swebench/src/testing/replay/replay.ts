import { isList, isObject, type JsonObject, readJson } from "@aenv/benchmark";
import { readVectors, Tally } from "@aenv/benchmark/testing";
import { replayGrading } from "./grading.ts";
import { replayMisc } from "./misc.ts";
import { replayParser } from "./parsers.ts";
import { replayRow } from "./rows.ts";
import { ordered } from "./vectors.ts";

/** Compares a file of vectors with this environment. The form of each vector is recognized by its members. */
export function replayFile(path: string): Tally {
  const tally = new Tally();
  const [whole, ...others] = readVectors(path, readJson);
  const records = isList(whole) && others.length === 0 ? whole : [...(whole === undefined ? [] : [whole]), ...others];
  for (const [i, record] of records.entries()) {
    const where = `vector ${i + 1}`;
    if (!isObject(record)) tally.compare("unknown", where, "not an object", "a vector");
    else attemptRecord(record, where, tally);
  }
  return tally;
}

/** A vector that cannot be compared is a difference; the others are still counted. */
function attemptRecord(record: JsonObject, where: string, tally: Tally): void {
  try {
    replayRecord(record, where, tally);
  } catch (error) {
    tally.compare("unknown", where, String(error), "a vector of a parser, of grading, of a kind, or a row");
  }
}

function replayRecord(record: JsonObject, where: string, tally: Tally): void {
  const has = (...keys: readonly string[]): boolean => keys.every((key) => record.has(key));
  if (has("kind", "input")) replayMisc(record, where, tally);
  else if (has("parser", "log")) replayParser(record, where, tally);
  else if (has("log", "log_parser", "eval_type")) replayGrading(record, where, tally);
  else if (has("instance_id", "eval_script", "image")) replayRow(record, where, tally);
  else tally.compare("unknown", where, { keys: ordered([...record.keys()]) }, "a vector of a parser, of grading, of a kind, or a row");
}
