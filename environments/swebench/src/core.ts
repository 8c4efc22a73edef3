export { type Json, type JsonObject, PyError, readJson } from "@aenv/benchmark";
export { isRowsFile, readParquetRows, readRowsFile } from "./dataset/files.ts";
export { completeRow } from "./dataset/legacy/row.ts";
export { type DatasetOptions, loadDataset, selectRows } from "./dataset/load.ts";
export { datasetName } from "./dataset/names.ts";
export { columnText, instanceIdOf, type Row } from "./dataset/row.ts";
export { checkTaskRepo, type TaskProblem } from "./dataset/task-repo/check.ts";
export { isTaskRepo } from "./dataset/task-repo/read.ts";
export { applyPatch } from "./evaluate/apply.ts";
export { ATTEMPTS, PATCH_FILE, REPOSITORY, RESET, REVERSE_CHECK } from "./evaluate/attempts.ts";
export { EvaluationError } from "./evaluate/error.ts";
export { DEFAULT_TIMEOUT_SECONDS, type Evaluation, type GradePatchOptions, gradePatch } from "./evaluate/evaluate.ts";
export { InstanceLog } from "./evaluate/log.ts";
export type { EvalSandbox, ExecOptions, ExecResult } from "./evaluate/sandbox.ts";
export { classifyFailure, type InfrastructureFailure, type Tier } from "./grading/infrastructure.ts";
export { type LogResult, readTestLog } from "./grading/log.ts";
export { type Grade, gradeOutput, type InstanceReport, readOutput, writeInstanceReport } from "./grading/report.ts";
export { judgeTests, type Resolution, resolutionOf, type TestsStatus, type Verdicts } from "./grading/verdicts.ts";
export type { LogParser, ParserContext, StatusMap } from "./parsers/parser.ts";
export { getLogParser, logParsers } from "./parsers/registry.ts";
export { type ArtifactName, instanceFolder, modelFolder, runFolder, runReportPath } from "./runs/paths.ts";
export { byInstance, modelOf, type Prediction, patchOf, predictionsExtension, readPredictions } from "./runs/predictions.ts";
export { type Regraded, regradeRun } from "./runs/regrade.ts";
export { RunFolder, type RunInfo } from "./runs/run-folder.ts";
export {
  makeRunReport,
  printRunReport,
  type ReadArtifact,
  type RunReport,
  type RunReportInput,
  reportedModel,
  writeRunReport,
} from "./runs/run-report.ts";
export { checkPredictions, goldPredictions, rowsToRun } from "./runs/select.ts";
export { type Asset, listAssets } from "./spec/assets.ts";
export { buildEvalScript, insertBeforeTests } from "./spec/eval-script.ts";
export { fileSafeImageName, imageName, imagePlatform } from "./spec/image-name.ts";
export { END_MARKER, START_MARKER } from "./spec/markers.ts";
export { type EvalSpec, makeSpec } from "./spec/spec.ts";
