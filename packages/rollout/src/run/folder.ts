import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError, type Trajectory, tryJson } from "@aenv/contract";
import { z } from "zod";
import { compressJournal } from "../journal/journal.ts";
import {
  countTrajectories,
  readTrajectories,
  rewriteTrajectories,
  type StoredTrajectory,
  TrajectoryWriter,
} from "../journal/trajectories.ts";
import type { RunSummary } from "../stats/summary.ts";
import { ArtifactFiles } from "./artifact-files.ts";
import { type RunSettings, requireSameSettings, runSettings } from "./settings.ts";

const SETTINGS = "run.json";
const SUMMARY = "summary.json";
const TRAJECTORIES = "trajectories.jsonl";
const ARTIFACTS = "artifacts";
const LOCK = "lock";

/** The folder of one run: its settings, its trajectories, the files of its episodes, and its summary when it has ended. */
export class RunFolder {
  readonly path: string;
  readonly name: string;
  /** The folder in which this and other runs are. */
  readonly parent: string;
  /** What the environment returned besides the score, such as logs. */
  readonly artifacts: ArtifactFiles;

  constructor(runs: string, name: string) {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/.test(name)) {
      throw new PlatformError("request.invalid", `'${name}' is no name for a run: use up to 200 letters, digits, '.', '_' and '-'`);
    }
    this.name = name;
    this.parent = runs;
    this.path = join(runs, name);
    this.artifacts = new ArtifactFiles(join(this.path, ARTIFACTS));
  }

  get trajectoriesPath(): string {
    return join(this.path, TRAJECTORIES);
  }

  /** The settings of a run that was begun; null if there is none. */
  settings(): RunSettings | null {
    return this.#read(SETTINGS, runSettings);
  }

  /** The summary of a run that has ended; null if it has not. */
  summary(): RunSummary | null {
    return this.#read(SUMMARY, z.looseObject({ episodes: z.number() })) as RunSummary | null;
  }

  /** Begins the run, or goes on with it if its settings are these. Only one process at a time. */
  begin(settings: RunSettings): Disposable {
    mkdirSync(this.path, { recursive: true });
    const lock = this.#lock();
    try {
      const stored = this.settings();
      if (stored === null) this.#write(SETTINGS, settings);
      else requireSameSettings(this.name, stored, settings);
      return lock;
    } catch (error) {
      lock[Symbol.dispose]();
      throw error;
    }
  }

  openTrajectories(onTrajectory: (stored: StoredTrajectory) => void): Promise<TrajectoryWriter> {
    return TrajectoryWriter.open(this.trajectoriesPath, onTrajectory);
  }

  trajectories(): ReturnType<typeof readTrajectories> {
    return readTrajectories(this.trajectoriesPath);
  }

  /** Removes trajectories, so that their episodes can be played again; the run is not complete then. Nothing happens if there are none. */
  async forget(isForgotten: (stored: Pick<Trajectory, "id" | "outcome" | "group">) => boolean): Promise<void> {
    const found = await countTrajectories(this.trajectoriesPath, isForgotten);
    if (found === 0) return;
    rmSync(join(this.path, SUMMARY), { force: true });
    await rewriteTrajectories(this.trajectoriesPath, (stored) => !isForgotten(stored));
  }

  /** Forgets what a crash left of groups of forks: a group is played as a whole, so that its samples have one trunk. */
  async forgetPartialGroups(): Promise<void> {
    const counts = new Map<string, number>();
    await countTrajectories(this.trajectoriesPath, ({ group }) => {
      if (group !== null) counts.set(group.id, (counts.get(group.id) ?? 0) + 1);
      return false;
    });
    await this.forget(({ group }) => group !== null && (counts.get(group.id) ?? 0) < group.size);
  }

  /** Writes the summary and compresses the trajectories: the run has ended. */
  async end(summary: RunSummary): Promise<void> {
    await compressJournal(this.trajectoriesPath);
    this.#write(SUMMARY, summary);
  }

  #lock(): Disposable {
    const file = join(this.path, LOCK);
    try {
      writeFileSync(file, String(process.pid), { flag: "wx" });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      const pid = Number(readFileSync(file, "utf8"));
      if (isRunning(pid)) {
        throw new PlatformError(
          "request.conflict",
          `run '${this.name}' is being played by process ${pid}; wait for it, or give this run another name`,
        );
      }
      writeFileSync(file, String(process.pid));
    }
    return { [Symbol.dispose]: () => rmSync(file, { force: true }) };
  }

  #read<S extends z.ZodType>(file: string, schema: S): z.infer<S> | null {
    const path = join(this.path, file);
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
    const parsed = schema.safeParse(tryJson(text));
    if (parsed.success) return parsed.data;
    throw new PlatformError(
      "store.damaged",
      `${path} cannot be read: ${z.prettifyError(parsed.error)}; repair it, or delete the run's folder`,
    );
  }

  #write(file: string, value: unknown): void {
    const path = join(this.path, file);
    writeFileSync(`${path}.part`, `${JSON.stringify(value, null, 2)}\n`);
    renameSync(`${path}.part`, path);
  }
}

/** The runs in a folder, by name. */
export function listRuns(runs: string): RunFolder[] {
  try {
    const folders = readdirSync(runs, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return folders.map(({ name }) => new RunFolder(runs, name)).filter((run) => run.settings() !== null);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function isRunning(pid: number): boolean {
  if (!(pid > 0) || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
