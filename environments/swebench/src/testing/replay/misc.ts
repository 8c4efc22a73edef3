import { isList, isObject, type Json, type JsonObject } from "@aenv/benchmark";
import { type Tally, textAt } from "@aenv/benchmark/testing";
import { classifyFailure } from "../../grading/infrastructure.ts";
import { instanceFolder, runReportPath } from "../../runs/paths.ts";
import { byInstance, predictionsExtension, readPredictions } from "../../runs/predictions.ts";
import { makeRunReport, printRunReport, reportedModel, writeRunReport } from "../../runs/run-report.ts";
import { insertBeforeTests } from "../../spec/eval-script.ts";
import { imageName } from "../../spec/image-name.ts";
import { makeSpec } from "../../spec/spec.ts";
import { attempt, objectAt, ordered, wanted } from "./vectors.ts";

/** `{kind, input, output | error}` */
export function replayMisc(record: JsonObject, where: string, tally: Tally): void {
  const kind = textAt(record, "kind");
  const run = KINDS[kind];
  const input = record.get("input") ?? null;
  const got = run === undefined ? "unknown kind" : attempt(() => run(input));
  tally.compare(
    kind,
    where,
    got,
    wanted(record, () => ordered(record.get("output"))),
  );
}

const KINDS: Readonly<Record<string, (input: Json) => unknown>> = {
  image_name: withObject((input) => {
    const namespace = input.get("namespace");
    return imageName(textAt(input, "instance_id"), {
      namespace: typeof namespace === "string" ? namespace : null,
      ...(input.has("arch") && { architecture: textAt(input, "arch") }),
      ...(input.has("tag") && { tag: textAt(input, "tag") }),
    });
  }),
  make_spec: withObject((input) => {
    const spec = makeSpec(input);
    const output: readonly (readonly [string, Json])[] = [
      ["eval_script", spec.evalScript],
      ["FAIL_TO_PASS", spec.failToPass],
      ["PASS_TO_PASS", spec.passToPass],
      ["image_assets", spec.imageAssets],
    ];
    return ordered(new Map(output));
  }),
  asset_inject: withObject((input) => {
    const commands = input.get("commands");
    return insertBeforeTests(textAt(input, "eval_script"), isList(commands) ? commands.map(String) : []);
  }),
  classify: (input) => {
    const failure = classifyFailure(String(input));
    return failure === null ? null : [failure.reason, failure.tier];
  },
  predictions: withObject((input) => {
    const extension = predictionsExtension(`predictions.${textAt(input, "ext")}`);
    return readPredictions(textAt(input, "text"), extension).map(({ all }) => ordered(all));
  }),
  run_report: withObject(runReport),
};

function runReport(input: JsonObject): unknown {
  const runId = textAt(input, "run_id");
  const files = objectAt(input, "files");
  const rows = input.get("dataset");
  const reportInput = {
    instanceIds: isList(rows) ? rows.map((row) => (isObject(row) ? textAt(row, "instance_id") : String(row))) : [],
    predictions: byInstance(predictionsOf(input)),
    read: (model: string, instanceId: string, name: string) => {
      const text = files.get(`${instanceFolder(runId, model, instanceId)}/${name}`);
      return typeof text === "string" ? new TextEncoder().encode(text) : null;
    },
  };
  const report = makeRunReport(reportInput);
  const path = runReportPath(textAt(input, "report_dir"), reportedModel(reportInput.predictions), runId);
  const output: readonly (readonly [string, Json])[] = [
    ["path", path],
    ["text", writeRunReport(report)],
    ["stdout", printRunReport(report, reportInput, path)],
  ];
  return ordered(new Map(output));
}

/** Predictions by their instance, in the order of the vector. */
function predictionsOf(input: JsonObject) {
  return [...objectAt(input, "predictions")].flatMap(([instanceId, all]) => (isObject(all) ? [{ instanceId, all }] : []));
}

function withObject(run: (input: JsonObject) => unknown): (input: Json) => unknown {
  return (input) => {
    if (!isObject(input)) throw new Error("the input of a vector is not an object");
    return run(input);
  };
}
