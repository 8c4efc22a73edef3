import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { compareText, decodeStrict, isList, isObject, type Json, type JsonObject, PyError, readJson } from "@aenv/benchmark";
import { parse } from "yaml";
import { type Row, toJson } from "../row.ts";

/** The file of a task repository that names its datasets and splits. */
export interface TaskRepoConfig {
  readonly datasets: readonly string[];
  readonly splits: readonly string[];
}

/** Columns that are files of their own. */
export const TEXT_FILES = {
  problem_statement: "problem_statement.md",
  patch: "gold.patch",
  test_patch: "test.patch",
  eval_script: "eval.sh",
} as const;

export function isTaskRepo(folder: string): boolean {
  return existsSync(join(folder, "sweb.yaml"));
}

export function readConfig(repo: string): TaskRepoConfig {
  const config = readYaml(join(repo, "sweb.yaml"));
  const list = (key: string): string[] => {
    const value = config.get(key);
    return isList(value) ? value.map(String) : [];
  };
  if (list("datasets").length === 0) throw new PyError("ValueError", `${join(repo, "sweb.yaml")} has no list 'datasets'`);
  return { datasets: list("datasets"), splits: config.has("splits") ? list("splits") : ["test"] };
}

/** The ids of all tasks: folders with a `task.yaml`, sorted. */
export function listTasks(repo: string): string[] {
  const tasks = join(repo, "tasks");
  if (!existsSync(tasks)) return [];
  return readdirSync(tasks)
    .filter((name) => existsSync(join(tasks, name, "task.yaml")) && statSync(join(tasks, name)).isDirectory())
    .sort(compareText);
}

/** The rows of a split; with ids, exactly these, in this order and of any split. */
export function readTaskRepo(repo: string, { split, instanceIds }: { split: string; instanceIds: readonly string[] }): Row[] {
  readConfig(repo);
  const known = listTasks(repo);
  if (instanceIds.length > 0) {
    const unknown = instanceIds.filter((id) => !known.includes(id));
    if (unknown.length > 0) throw new PyError("ValueError", `${repo} has no tasks ${unknown.join(" ")}`);
    return instanceIds.map((id) => readTask(repo, id));
  }
  const rows = known.map((id) => readTask(repo, id));
  const found = rows.filter((row) => row.get("split") === split);
  if (found.length > 0) return found;
  const splits = [...new Set(rows.map((row) => String(row.get("split"))))].sort(compareText);
  throw new PyError("ValueError", `${repo} has no tasks of the split '${split}'; its splits are: ${splits.join(", ")}`);
}

export function readTask(repo: string, instanceId: string): Row {
  const folder = join(repo, "tasks", instanceId);
  const row = new Map<string, Json>(readYaml(join(folder, "task.yaml")));
  const tests = readJson(readText(join(folder, "tests.json")));
  for (const key of ["FAIL_TO_PASS", "PASS_TO_PASS"]) row.set(key, (isObject(tests) ? tests.get(key) : undefined) ?? []);
  for (const [column, file] of Object.entries(TEXT_FILES)) row.set(column, readText(join(folder, file)));
  const hints = join(folder, "hints.md");
  row.set("hints_text", existsSync(hints) ? readText(hints) : "");
  return row;
}

/** Without changes of line ends. */
function readText(path: string): string {
  if (!existsSync(path)) throw new PyError("FileNotFoundError", `${path} is missing`);
  return decodeStrict(readFileSync(path), path);
}

function readYaml(path: string): JsonObject {
  const value = toJson(parse(readText(path), { version: "1.1", logLevel: "silent" }));
  if (!isObject(value)) throw new PyError("ValueError", `${path} is not a map`);
  return value;
}
