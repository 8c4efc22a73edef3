export interface BenchRun {
  readonly id: string;
  readonly agent: string;
  readonly model: string | null;
  readonly startedAt: Date;
}

export interface ResultsOptions {
  readonly dataFolder: string;
  /** Becomes Harbor's folder of the job. */
  readonly folder: string;
  readonly run: BenchRun;
  readonly taskIds: readonly string[];
  readonly samples: number;
  /** Episodes at a time. */
  readonly concurrency?: number;
}
