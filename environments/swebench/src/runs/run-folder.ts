import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isObject, readJson, writeJson } from "@aenv/benchmark";
import type { Evaluation } from "../evaluate/evaluate.ts";
import { type InstanceReport, writeInstanceReport } from "../grading/report.ts";
import { type ArtifactName, instanceFolder, runFolder } from "./paths.ts";

/** Where the rows of a run came from. */
export interface RunInfo {
  readonly dataset: string;
  readonly split: string;
  readonly taskRepo: string | null;
}

/** The files of a run, in the folders and formats of the reference, so that its tools read them. */
export class RunFolder {
  readonly #root: string;
  readonly #runId: string;

  /** `root` is the working directory of the reference. */
  constructor(root: string, runId: string) {
    if (runId === "") throw new Error("the id of a run is empty: name one");
    this.#root = root;
    this.#runId = runId;
  }

  /** Null if the file does not exist. */
  readonly read = (model: string, instanceId: string, name: ArtifactName): Uint8Array | null => {
    const path = this.#path(model, instanceId, name);
    return existsSync(path) ? readFileSync(path) : null;
  };

  /** Keeps an evaluation. An earlier report stays if there is no new one. */
  keep(model: string, instanceId: string, patch: string | null, evaluation: Evaluation): void {
    this.#write(model, instanceId, "patch.diff", patch ?? "");
    if (evaluation.script !== null) this.#write(model, instanceId, "eval.sh", evaluation.script);
    if (evaluation.output !== null) this.#write(model, instanceId, "test_output.txt", evaluation.output);
    this.#write(model, instanceId, "run_instance.log", evaluation.log);
    if (evaluation.grade !== null) this.keepReport(model, instanceId, evaluation.grade.report);
  }

  keepReport(model: string, instanceId: string, report: InstanceReport): void {
    this.#write(model, instanceId, "report.json", writeInstanceReport(instanceId, report));
  }

  /** Keeps a file of an evaluation that was made elsewhere. */
  keepFile(model: string, instanceId: string, name: ArtifactName, bytes: Uint8Array): void {
    this.#write(model, instanceId, name, bytes);
  }

  /** Without a task repository, that of the file that exists is kept. */
  keepInfo({ dataset, split, taskRepo }: RunInfo, now: Date): void {
    const path = join(this.#root, runFolder(this.#runId), "run.json");
    const info = {
      dataset,
      split,
      task_repo: taskRepo ?? (existsSync(path) ? taskRepoOf(readFileSync(path, "utf8")) : null),
      created_at: `${now.toISOString().slice(0, 19)}+00:00`,
    };
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${writeJson(info, 2)}\n`);
  }

  #write(model: string, instanceId: string, name: ArtifactName, content: string | Uint8Array): void {
    const path = this.#path(model, instanceId, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }

  #path(model: string, instanceId: string, name: ArtifactName): string {
    return join(this.#root, instanceFolder(this.#runId, model, instanceId), name);
  }
}

function taskRepoOf(text: string): string | null {
  const info = readJson(text);
  const taskRepo = isObject(info) ? info.get("task_repo") : null;
  return typeof taskRepo === "string" ? taskRepo : null;
}
