import type { Outcome, Trajectory } from "@aenv/contract";

/**
 * The exports of a benchmark's `./bench`, for `aenv bench run`, `grade` and `images`. Every member is optional: a benchmark without
 * images, result files of its own or answers to grade leaves them out.
 */
export interface BenchModule {
  /**
   * The images that tasks need, by task id, from the prepared data folder. All tasks if none are named. A task that the engine cannot
   * play needs none. `variables` are those of the run's instances. Starts nothing.
   */
  imagesOf?(
    dataFolder: string,
    taskIds?: readonly string[],
    engine?: string,
    variables?: Readonly<Record<string, string>>,
  ): Promise<ReadonlyMap<string, readonly string[]>>;
  /** How the images that can be built are built. Others can only be pulled. */
  imageSources?(
    dataFolder: string,
    taskIds?: readonly string[],
    engine?: string,
    variables?: Readonly<Record<string, string>>,
  ): Promise<readonly ImageSource[]>;
  /** Writes the benchmark's own result files. Called once for a run, also when it goes on. */
  results?(options: ResultsOptions): Results | Promise<Results>;
  /** Grades answers that exist already. */
  readonly grading?: Grading;
}

/** What `docker build` needs for one image. */
export interface ImageSource {
  /** The name that `imagesOf` gives it. */
  readonly image: string;
  /** The folder that is sent to the builder. */
  readonly context: string;
  /** The path of the Dockerfile; `Dockerfile` in the context if not given. */
  readonly dockerfile?: string;
  readonly buildArgs?: Readonly<Record<string, string>>;
  /** Such as `linux/amd64`. */
  readonly platform?: string;
}

/** The run whose results are written. */
export interface BenchRun {
  /** The name of the run's folder. */
  readonly id: string;
  /** The name of the agent, such as `oracle`; `grade` for answers that were graded. */
  readonly agent: string;
  readonly model: string | null;
  readonly startedAt: Date;
}

export interface ResultsOptions {
  readonly dataFolder: string;
  /** An existing folder, for this run alone: `results` in the run's folder. */
  readonly folder: string;
  readonly run: BenchRun;
  /** The tasks of the run, in order. */
  readonly taskIds: readonly string[];
  /** Episodes of each task. */
  readonly samples: number;
  /** Episodes at a time. */
  readonly concurrency: number;
}

export interface Results {
  /**
   * Called for every episode that has ended, one after the other, before `end`. A run that goes on calls it again for episodes that
   * were played before, so the same episode gives the same files.
   */
  episode(episode: FinishedEpisode): Promise<void>;
  /** Called once after the last episode, also if the run was stopped before all were played. */
  end(): Promise<ResultsSummary>;
}

export interface ResultsSummary {
  /** Names and values, shown after the table of the run. */
  readonly summary: readonly (readonly [name: string, value: string])[];
}

export interface FinishedEpisode {
  /** Null in an environment without tasks. */
  readonly taskId: string | null;
  /** Which of the samples of its task it is, from 0. */
  readonly sample: number;
  /** Attempts before this one that failed. */
  readonly attempt: number;
  readonly outcome: Outcome;
  /** The files that the environment's function `episode_artifacts` returned, by relative path. */
  readonly artifacts: ReadonlyMap<string, Uint8Array>;
  readonly trajectory: Trajectory;
  /** The answer, if it was graded and not played. */
  readonly prediction: Prediction | null;
}

export interface Grading {
  /**
   * The answers in `predictions`: the path of a file, or `gold` for the benchmark's own solutions. Only those of `taskIds`, if given.
   * Throws if an answer is for a task that the data does not have.
   */
  readPredictions(options: {
    readonly dataFolder: string;
    readonly predictions: string;
    readonly taskIds?: readonly string[];
  }): Promise<readonly Prediction[]>;
  /**
   * Grades what `results` stored in the folder anew, without running anything: `folder` is the same as that of `results`, and its
   * files are replaced.
   */
  regrade?(options: { readonly dataFolder: string; readonly folder: string; readonly run: BenchRun }): Promise<ResultsSummary>;
}

/** One answer to be graded. At most one of a task. */
export interface Prediction {
  readonly taskId: string;
  /** Who gave it; `gold` for the benchmark's own solution. */
  readonly model: string;
  /**
   * The arguments of the environment's reward that grade it, on an instance without a task. Null for an answer that is not graded,
   * such as an empty one: it is given to `results` with the reward 0.
   */
  readonly arguments: Readonly<Record<string, unknown>> | null;
}
