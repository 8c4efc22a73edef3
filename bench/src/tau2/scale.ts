/** How much is measured; the test of the suite measures little. */
export interface Scale {
  readonly rounds: number;
  readonly directMs: number;
  /** Instances that are played through in a round. */
  readonly episodes: number;
  /** Instances that are created and asked once in a round, and fresh processes beside them. */
  readonly firsts: number;
  readonly coldStarts: number;
  /** Worlds that are made without a platform, and copies of the database beside them. */
  readonly worlds: number;
  readonly copies: number;
  /** Instances that live at once. */
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
