/** How much is measured. */
export interface Scale {
  readonly rounds: number;
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
  episodes: { 1: 300, 64: 1_500, 1024: 2_048 },
  directEpisodes: 50_000,
  pythonEpisodes: 128,
  fewEpisodes: 1_000,
  manyEpisodes: 20_000,
};
