/** How much is measured. */
export interface Scale {
  readonly rounds: number;
  /** Rounds before the measured ones. */
  readonly warmUps: number;
  /** Episodes of one measurement, by concurrency. */
  readonly episodes: Readonly<Record<number, number>>;
  readonly directEpisodes: number;
  readonly pythonEpisodes: number;
  /** The two sizes of a run whose peak memory is compared. */
  readonly fewEpisodes: number;
  readonly manyEpisodes: number;
}

export const FULL: Scale = {
  rounds: 3,
  warmUps: 2,
  // Enough that what a run costs once, and code that is not compiled yet, do not count.
  episodes: { 1: 1_000, 64: 2_000, 1024: 4_096 },
  directEpisodes: 50_000,
  pythonEpisodes: 128,
  fewEpisodes: 1_000,
  manyEpisodes: 20_000,
};
