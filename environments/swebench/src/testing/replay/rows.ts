import type { Json, JsonObject } from "@aenv/benchmark";
import { type Tally, textAt } from "@aenv/benchmark/testing";
import { completeRow } from "../../dataset/legacy/row.ts";
import { attempt } from "./vectors.ts";

const COLUMNS = ["image", "log_parser", "eval_type", "eval_script"] as const;

/** A published row: its columns are derived anew from those of older releases. */
export function replayRow(record: JsonObject, where: string, tally: Tally): void {
  const legacy = new Map<string, Json>([...record].filter(([column]) => !COLUMNS.some((derived) => derived === column)));
  const id = `${where}, ${textAt(record, "instance_id")}`;
  for (const column of COLUMNS) {
    const got = attempt(() => completeRow(legacy).get(column));
    tally.compare(`row, ${column}`, id, got, record.get(column));
  }
}
