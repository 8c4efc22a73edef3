import { relative } from "node:path";
import type { CommandResult } from "./shell/session.ts";
import { Terminal } from "./shell/terminal.ts";
import { Random } from "./tasks/random.ts";
import type { Exercise, TerminalTask } from "./tasks/task.ts";
import { treeDigest, writeFiles } from "./tasks/tree.ts";

export interface EpisodeOptions {
  readonly task: TerminalTask | null;
  readonly seed: number;
  readonly variables: Readonly<Record<string, string>>;
}

export interface EpisodeScore {
  readonly reward: 0 | 1;
  /** What the trainer is told: why the reward is 0. */
  readonly problems: readonly string[];
}

const OUTPUT_BYTES = 64 * 1024;
const CHECK_TIMEOUT_MS = 10_000;

/** A terminal with the files of a task, or with an empty folder. */
export class Episode {
  readonly terminal: Terminal;
  readonly exercise: Exercise | null;

  private constructor(terminal: Terminal, exercise: Exercise | null) {
    this.terminal = terminal;
    this.exercise = exercise;
  }

  static async open({ task, seed, variables }: EpisodeOptions): Promise<Episode> {
    const exercise = task?.begin(new Random(seed)) ?? null;
    const terminal = await Terminal.open({ variables, outputBytes: OUTPUT_BYTES });
    try {
      await writeFiles(terminal.workFolder, exercise?.files ?? {});
      return new Episode(terminal, exercise);
    } catch (error) {
      await terminal.close();
      throw error;
    }
  }

  async score(signal: AbortSignal): Promise<EpisodeScore> {
    if (this.exercise === null) throw new Error("this episode has no task, so it has no reward; reset it to a task");
    const run = (command: string): Promise<CommandResult> => this.terminal.runAside(command, { timeoutMs: CHECK_TIMEOUT_MS, signal });
    const problems = await this.exercise.check({ folder: this.terminal.workFolder, run });
    return { reward: problems.length === 0 ? 1 : 0, problems };
  }

  /** What stands for the state when two episodes are compared: the files, and where the sessions are. */
  async digest(): Promise<{ readonly files: string; readonly folders: Readonly<Record<string, string>> }> {
    const { workFolder } = this.terminal;
    const folders = Object.entries(await this.terminal.folders()).map(([name, path]) => [name, relative(workFolder, path)]);
    return { files: await treeDigest(workFolder), folders: Object.fromEntries(folders) };
  }
}
