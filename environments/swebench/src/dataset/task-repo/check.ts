import { existsSync } from "node:fs";
import { join } from "node:path";
import { isList, PyError } from "@aenv/benchmark";
import { imageName } from "../../spec/image-name.ts";
import { END_MARKER, START_MARKER } from "../../spec/markers.ts";
import type { Row } from "../row.ts";
import { listTasks, readConfig, readTask, type TaskRepoConfig, TEXT_FILES } from "./read.ts";

const KEYS = ["instance_id", "repo", "version", "base_commit", "split", "image", "log_parser", "eval_type"] as const;
const FILES = ["task.yaml", "tests.json", "Dockerfile", ...Object.values(TEXT_FILES)] as const;

export interface TaskProblem {
  readonly task: string;
  readonly problem: string;
}

/** Checks that all tasks of a repository are complete and consistent. */
export function checkTaskRepo(repo: string): TaskProblem[] {
  const config = readConfig(repo);
  return listTasks(repo).flatMap((task) => problemsOf(repo, task, config).map((problem) => ({ task, problem })));
}

function problemsOf(repo: string, task: string, config: TaskRepoConfig): string[] {
  const missing = FILES.filter((file) => !existsSync(join(repo, "tasks", task, file)));
  if (missing.length > 0) return missing.map((file) => `${file} is missing`);
  try {
    return [...rowProblems(readTask(repo, task), task, config)];
  } catch (error) {
    if (error instanceof PyError) return [error.message];
    throw error;
  }
}

function* rowProblems(row: Row, task: string, config: TaskRepoConfig): Generator<string> {
  for (const key of KEYS) if (!row.has(key)) yield `task.yaml has no '${key}'`;
  if (row.get("instance_id") !== task) yield `instance_id is '${String(row.get("instance_id"))}', but the folder is '${task}'`;
  for (const key of ["FAIL_TO_PASS", "PASS_TO_PASS"]) {
    const tests = row.get(key);
    if (!isList(tests) || !tests.every((test) => typeof test === "string")) yield `${key} in tests.json is not a list of strings`;
    else if (key === "FAIL_TO_PASS" && tests.length === 0 && row.get("split") !== "deprecated") yield "FAIL_TO_PASS is empty";
  }
  const script = String(row.get("eval_script"));
  for (const marker of [START_MARKER, END_MARKER]) if (!script.includes(marker)) yield `eval.sh does not print '${marker}'`;
  for (const column of ["patch", "test_patch"] as const) {
    const patch = String(row.get(column));
    if (patch !== "" && !patch.includes("diff --git")) yield `${TEXT_FILES[column]} is not a patch of git`;
  }
  const image = imageName(task, { namespace: "swebench" });
  if (row.has("image") && row.get("image") !== image) yield `image is '${String(row.get("image"))}', but should be '${image}'`;
  const split = row.get("split");
  if (typeof split === "string" && !config.splits.includes(split)) yield `the split '${split}' is not in sweb.yaml`;
  const datasets = row.get("datasets");
  for (const name of isList(datasets) ? datasets.map(String) : []) {
    if (!config.datasets.includes(name)) yield `the dataset '${name}' is not in sweb.yaml`;
  }
}
