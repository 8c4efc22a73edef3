import type { Environment } from "./environment.ts";

/** One of the instances that were asked for: ready to be used, or why it did not start. */
export type BatchItem = { readonly environment: Environment; readonly error: null } | { readonly environment: null; readonly error: Error };

/**
 * Environments that were created together, in the order in which they were asked for.
 *
 * @example
 * await using batch = await Environment.createMany("shop@1.0.0", 32);
 * await Promise.all(batch.environments.map((env) => play(env)));
 */
export class EnvironmentBatch implements AsyncDisposable {
  /** One for each instance that was asked for. */
  readonly items: readonly BatchItem[];
  /** Those that are ready. */
  readonly environments: readonly Environment[];
  /** Why the others did not start. */
  readonly errors: readonly Error[];

  constructor(items: readonly BatchItem[]) {
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
