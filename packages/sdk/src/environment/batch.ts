/** One of the requested instances: ready to use, or the error of its start. */
export type BatchItem<Item extends Releasable> =
  | { readonly environment: Item; readonly error: null }
  | { readonly environment: null; readonly error: Error };

/** The part of an environment that a batch uses. */
export interface Releasable {
  release(): Promise<void>;
}

/**
 * Environments that were created together, in the order of the request.
 *
 * @example
 * await using batch = await Environment.createMany("shop@1.0.0", 32);
 * await Promise.all(batch.environments.map((env) => play(env)));
 */
export class EnvironmentBatch<Item extends Releasable> implements AsyncDisposable {
  /** An item for each requested instance. */
  readonly items: readonly BatchItem<Item>[];
  /** The environments that started. */
  readonly environments: readonly Item[];
  /** The errors of those that did not start. */
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
