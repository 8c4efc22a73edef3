import type { JsonObject } from "@aenv/benchmark";
import { type Tally, textAt } from "@aenv/benchmark/testing";
import { getLogParser } from "../../parsers/registry.ts";
import { attempt, ordered, wanted } from "./vectors.ts";

/** `{parser, instance_id, version, log, map | error}` */
export function replayParser(record: JsonObject, where: string, tally: Tally): void {
  const name = textAt(record, "parser");
  const id = record.get("instance_id");
  const context = { instanceId: typeof id === "string" ? id : "", version: record.get("version") };
  const got = attempt(() => [...getLogParser(name)(textAt(record, "log"), context)]);
  tally.compare(
    name,
    where,
    got,
    wanted(record, () => ordered(record.get("map"))),
  );
}
