import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { Sandbox } from "../engine/engine.ts";
import { cancelled, existsAlready, startFailed } from "./start-errors.ts";

/** The starts and ends of sandboxes that an engine has in progress, and whether it is closed. */
export class EngineWork {
  readonly #starting = new Map<string, Promise<Sandbox>>();
  readonly #ending = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Fires when the engine is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  get isStartingAny(): boolean {
    return this.#starting.size > 0;
  }

  isStarting(id: string): boolean {
    return this.#starting.has(id);
  }

  /**
   * Runs a start, which ends with `request.cancelled` when the signal fires or the engine is closed, and else with a `PlatformError` if it fails.
   */
  async start(id: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<Sandbox>): Promise<Sandbox> {
    if (this.isClosed) throw new PlatformError("server.draining", `sandbox '${id}' was not created: the engine is closed`);
    if (signal.aborted) throw cancelled(id);
    if (this.isStarting(id)) throw existsAlready(id);
    try {
      const starting = work(AbortSignal.any([signal, this.#closing.signal]));
      this.#starting.set(id, starting);
      return await starting.finally(() => this.#starting.delete(id));
    } catch (error) {
      const isCancelled = signal.aborted || this.isClosed;
      if (isCancelled && !isPlatformError(error, "request.cancelled")) throw cancelled(id);
      throw isPlatformError(error) ? error : startFailed(id, messageOf(error), [], error);
    }
  }

  end(work: Promise<void>): Promise<void> {
    const ending = work.finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    return ending;
  }

  /** Cancels the starts, and waits for the ends: a caller may not, and if the server exited in between, sandboxes would be left. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#starting.values());
    await Promise.allSettled(this.#ending);
  }
}
