import { isList, type Json, type JsonObject, readJson } from "@aenv/benchmark";
import { type Tally, textAt } from "@aenv/benchmark/testing";
import { gradeOutput, readOutput, writeInstanceReport } from "../../grading/report.ts";
import type { EvalSpec } from "../../spec/spec.ts";
import { attempt, ordered, wanted } from "./vectors.ts";

/** The instance of grading vectors that name none. */
const INSTANCE = "x__y-1";

/** `{log, FAIL_TO_PASS, PASS_TO_PASS, eval_type, log_parser, model_patch, pred_id?, report, status_map, found, resolution, report_json?}` */
export function replayGrading(record: JsonObject, where: string, tally: Tally): void {
  const kind = record.has("pred_id") ? "grading with bytes" : "grading";
  const got = attempt(() => graded(record));
  const parts = ["report", "status_map", "found", "resolution", "report_json"] as const;
  tally.compare(
    kind,
    where,
    got,
    wanted(record, () => parts.map((part) => ordered(record.get(part)) ?? null)),
  );
}

function graded(record: JsonObject): unknown {
  const log = new TextEncoder().encode(textAt(record, "log"));
  const patch = record.get("model_patch");
  const spec = specOf(record);
  const { report, resolution } = gradeOutput(spec, typeof patch === "string" ? patch : null, log);
  // The vectors have the results of the log also without a patch.
  const { map, hasRun } = readOutput(spec, log);
  const text = writeInstanceReport(idOf(record, "pred_id"), report);
  return [ordered(readJson(text)), [...map], hasRun, resolution, record.has("report_json") ? text : null];
}

function specOf(record: JsonObject): EvalSpec {
  return {
    instanceId: idOf(record, "instance_id"),
    version: record.get("version") ?? "1",
    image: "",
    repo: "",
    logParser: textAt(record, "log_parser"),
    evalType: textAt(record, "eval_type"),
    evalScript: "",
    failToPass: names(record.get("FAIL_TO_PASS")),
    passToPass: names(record.get("PASS_TO_PASS")),
    imageAssets: new Map(),
  };
}

function idOf(record: JsonObject, key: string): string {
  const id = record.get(key);
  return typeof id === "string" ? id : INSTANCE;
}

function names(value: Json | undefined): string[] {
  return isList(value) ? value.map(String) : [];
}
