export { type Json, type JsonObject, PyError, readJson } from "@aenv/benchmark";
export { isRowsFile, readParquetRows, readRowsFile } from "./dataset/files.ts";
export { completeRow } from "./dataset/legacy/row.ts";
export { type DatasetOptions, loadDataset, selectRows } from "./dataset/load.ts";
export { datasetName } from "./dataset/names.ts";
export { columnText, instanceIdOf, type Row } from "./dataset/row.ts";
export { checkTaskRepo, type TaskProblem } from "./dataset/task-repo/check.ts";
export { isTaskRepo } from "./dataset/task-repo/read.ts";
export { type Asset, listAssets } from "./eval-script/assets.ts";
export { END_MARKER, START_MARKER } from "./eval-script/markers.ts";
export { buildEvalScript, insertBeforeTests } from "./eval-script/script.ts";
export { applyPatch } from "./evaluate/apply.ts";
export { EvaluationError } from "./evaluate/error.ts";
export { DEFAULT_TIMEOUT_SECONDS, type Evaluation, type GradePatchOptions, gradePatch } from "./evaluate/evaluate.ts";
export { InstanceLog } from "./evaluate/log.ts";
export type { EvalSandbox, ExecOptions, ExecResult } from "./evaluate/sandbox.ts";
export { type LogResult, readTestLog } from "./grading/log.ts";
export { type Grade, gradeOutput, type InstanceReport, readOutput, writeInstanceReport } from "./grading/report.ts";
export { judgeTests, type Resolution, resolutionOf, type TestsStatus, type Verdicts } from "./grading/verdicts.ts";
export { fileSafeImageName, imageName, imagePlatform } from "./images/name.ts";
export { classifyFailure, type InfrastructureFailure, type Tier } from "./infrastructure/classes.ts";
export type { LogParser, ParserContext, StatusMap } from "./parsers/parser.ts";
export { getLogParser, logParsers } from "./parsers/registry.ts";
export { ATTEMPTS, PATCH_FILE, REPOSITORY, RESET, REVERSE_CHECK } from "./patch/attempts.ts";
export { byInstance, modelOf, type Prediction, patchOf, predictionsExtension, readPredictions } from "./predictions/predictions.ts";
export { checkPredictions, goldPredictions, rowsToRun } from "./predictions/select.ts";
export {
  makeRunReport,
  printRunReport,
  type ReadArtifact,
  type RunReport,
  type RunReportInput,
  reportedModel,
  writeRunReport,
} from "./report/run-report.ts";
export { type ArtifactName, instanceFolder, modelFolder, runFolder, runReportPath } from "./runs/paths.ts";
export { type Regraded, regradeRun } from "./runs/regrade.ts";
export { RunFolder, type RunInfo } from "./runs/run-folder.ts";
export { type EvalSpec, makeSpec } from "./spec/spec.ts";
