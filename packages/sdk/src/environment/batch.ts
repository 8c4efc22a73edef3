/** One of the instances that were asked for: ready to be used, or why it did not start. */
export type BatchItem<Item extends Releasable> =
  | { readonly environment: Item; readonly error: null }
  | { readonly environment: null; readonly error: Error };

/** What a batch holds: it only needs to end it. */
export interface Releasable {
  release(): Promise<void>;
}

/**
 * Environments that were created together, in the order in which they were asked for.
 *
 * @example
 * await using batch = await Environment.createMany("shop@1.0.0", 32);
 * await Promise.all(batch.environments.map((env) => play(env)));
 */
export class EnvironmentBatch<Item extends Releasable> implements AsyncDisposable {
  /** One for each instance that was asked for. */
  readonly items: readonly BatchItem<Item>[];
  /** Those that are ready. */
  readonly environments: readonly Item[];
  /** Why the others did not start. */
  readonly errors: readonly Error[];

  constructor(items: readonly BatchItem<Item>[]) {
    this.items = items;
    this.environments = items.flatMap(({ environment }) => environment ?? []);
    this.errors = items.flatMap(({ error }) => error ?? []);
  }

  /** Ends every instance of the batch. Safe to call more than once; never throws. */
  async release(): Promise<void> {
    await Promise.all(this.environments.map((env) => env.release()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}
