/** Files of one instance in a run. */
export const ARTIFACTS = ["report.json", "test_output.txt", "run_instance.log", "patch.diff", "eval.sh"] as const;
export type ArtifactName = (typeof ARTIFACTS)[number];

const ROOT = "logs/run_evaluation";

/** The folder of a run, relative to the working directory, as the reference names it. */
export function runFolder(runId: string): string {
  return `${ROOT}/${runId}`;
}

export function instanceFolder(runId: string, model: string, instanceId: string): string {
  return `${runFolder(runId)}/${modelFolder(model)}/${instanceId}`;
}

/** The name of a model as the name of a file. */
export function modelFolder(model: string): string {
  return model.replaceAll("/", "__");
}

/** The run report of a model. Empty parts of the folder and `.` are left out, as by Python's `Path`. */
export function runReportPath(reportFolder: string, model: string, runId: string): string {
  const start = reportFolder.startsWith("/") ? "/" : "";
  const parts = reportFolder.split("/").filter((part) => part !== "" && part !== ".");
  return start + [...parts, `${modelFolder(model)}.${runId}.json`].join("/");
}
