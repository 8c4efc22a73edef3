/** The size of the measurement; the suite's test uses small numbers. */
export interface Scale {
  readonly rounds: number;
  readonly directMs: number;
  /** Instances that run all their calls in a round. */
  readonly episodes: number;
  /** Instances that are created and called once in a round, and new processes to compare with. */
  readonly firsts: number;
  readonly coldStarts: number;
  /** Worlds that are created without a platform, and copies of the database to compare with. */
  readonly worlds: number;
  readonly copies: number;
  /** Instances that are live at the same time. */
  readonly many: number;
  /** Golden actions that write, after which the whole database is dumped and hashed. */
  readonly writes: number;
}

export const FULL: Scale = {
  rounds: 9,
  directMs: 500,
  episodes: 250,
  firsts: 200,
  coldStarts: 2,
  worlds: 2_000,
  copies: 10,
  many: 5_000,
  writes: 40,
};
