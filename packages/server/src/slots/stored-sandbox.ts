import type { Sandbox, SandboxEngine } from "@aenv/sandbox";
import type { SnapshotSpace } from "../sandboxes/snapshot-space.ts";

export interface StoredSandboxOptions {
  readonly engine: Pick<SandboxEngine, "snapshots">;
  readonly space: SnapshotSpace;
  /** Called once, if the sandbox cannot be stored or copied. */
  readonly onFailure: (error: unknown) => void;
  readonly onCopy: () => void;
  /** Fires when the server ends: nothing is stored any more. */
  readonly stop: AbortSignal;
}

/** A sandbox that is stored with its memory before an instance has used it, so that others start as its copies. */
export class StoredSandbox {
  readonly #options: StoredSandboxOptions;
  /** Null before the first sandbox; its value is null if that could not be stored or copied. */
  #snapshot: Promise<string | null> | null = null;
  #taking: Promise<string | null> | null = null;
  #isDropped = false;

  constructor(options: StoredSandboxOptions) {
    this.#options = options;
  }

  /** Starts the first one and stores it. Copies wait for both; if the start fails, there are none. */
  async first(start: () => Promise<Sandbox>): Promise<Sandbox> {
    const starting = start();
    this.#snapshot = starting.then(
      (sandbox) => this.#take(sandbox),
      () => null,
    );
    const sandbox = await starting;
    await this.#snapshot;
    return sandbox;
  }

  /** Stores the sandbox, if it is the first one. */
  async store(sandbox: Sandbox): Promise<void> {
    this.#snapshot ??= this.#take(sandbox);
    await this.#snapshot;
  }

  /** A copy; null if there is none. A stored sandbox that cannot be continued is not used any more. */
  async copy(start: (snapshot: string) => Promise<Sandbox>, signal: AbortSignal): Promise<Sandbox | null> {
    const snapshot = await this.#snapshot;
    signal.throwIfAborted();
    if (snapshot === null) return null;
    try {
      const copied = await start(snapshot);
      this.#options.onCopy();
      return copied;
    } catch (error) {
      // A request that was cancelled says nothing about the stored sandbox.
      signal.throwIfAborted();
      // Another copy may have failed before.
      if (this.#taking === null) return null;
      this.#taking = null;
      this.#snapshot = Promise.resolve(null);
      if (!this.#options.stop.aborted) this.#options.onFailure(error);
      await this.#remove(snapshot);
      return null;
    }
  }

  /** Removes what is stored. Does not wait for a first sandbox that is just starting: it is not stored. */
  async drop(): Promise<void> {
    this.#isDropped = true;
    const snapshot = await this.#taking;
    this.#snapshot = null;
    if (snapshot !== null) await this.#remove(snapshot);
  }

  #take(sandbox: Sandbox): Promise<string | null> {
    const { engine, space, stop, onFailure } = this.#options;
    const { snapshots } = sandbox;
    if (snapshots === undefined || !engine.snapshots?.fidelities.includes("memory") || this.#isDropped || stop.aborted)
      return Promise.resolve(null);
    // Not aborted with the request: others wait for it too.
    this.#taking = space
      .use(() => snapshots.take("memory", stop))
      .then(
        ({ id }) => id,
        (error: unknown) => {
          if (!stop.aborted) onFailure(error);
          return null;
        },
      );
    return this.#taking;
  }

  async #remove(snapshot: string): Promise<void> {
    await this.#options.engine.snapshots?.remove(snapshot).catch(() => {});
  }
}
