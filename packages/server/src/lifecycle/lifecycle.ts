import { setTimeout } from "node:timers/promises";
import { type Rounds, startRounds } from "./rounds.ts";

/**
 * What a server does when it closes, in this order:
 * - `retire`: connections are closed after their next response, and load balancers notice that the server is not ready. Only with `drainMs`.
 * - `refuse`: new work is refused, and what callers hold open is ended.
 * - `stop`: work in the background stops; the server's ports still answer it.
 * - `finish`: calls in flight end, and the ports are closed.
 * - `close`: resources are closed, those that were opened last first, each when the one before it is closed.
 */
export type ClosingStep = "retire" | "refuse" | "stop" | "finish" | "close";

/** Periodic work while the server runs. */
export interface RepeatedWork {
  readonly work: () => Promise<unknown>;
  readonly everyMs: number;
  /** The message in the log if a round fails. */
  readonly failure: string;
  /** The first round is at the start of the server. */
  readonly isFirstAtOnce?: boolean;
}

export interface LifecycleOptions {
  /** How long a server that closes still accepts requests; null for not at all. */
  readonly drainMs: number | null;
  readonly logFailure: (message: string) => (error: unknown) => void;
}

/** How long calls and starts in flight may take until the server closes. */
export const GRACE_MS = 10_000;
const SWEEP_MS = 5 * 60_000;

/** When a server starts and closes. Each component registers here what it repeats and how it ends, when it is opened. */
export class Lifecycle {
  readonly #options: LifecycleOptions;
  readonly #closing: Readonly<Record<ClosingStep, (() => unknown)[]>> = { retire: [], refuse: [], stop: [], finish: [], close: [] };
  readonly #repeated: RepeatedWork[] = [];
  readonly #sweeps: (() => Promise<unknown>)[] = [];
  #rounds: readonly Rounds[] = [];
  #wasStarted = false;
  #closed: Promise<void> | null = null;

  constructor(options: LifecycleOptions) {
    this.#options = options;
    this.every({ work: () => this.sweep(), everyMs: SWEEP_MS, failure: "a cleanup failed" });
  }

  /** False while the server opens, and from the beginning of its end. */
  get isRunning(): boolean {
    return this.#wasStarted && this.#closed === null;
  }

  /** False if the server closes because a component could not be opened. */
  get wasStarted(): boolean {
    return this.#wasStarted;
  }

  every(work: RepeatedWork): void {
    this.#repeated.push(work);
  }

  /** `sweep` removes what is not needed any more; it is called every few minutes. */
  addSweep(sweep: () => Promise<unknown>): void {
    this.#sweeps.push(sweep);
  }

  on(step: ClosingStep, work: () => unknown): void {
    this.#closing[step].push(work);
  }

  start(): void {
    this.#wasStarted = true;
    this.#rounds = this.#repeated.map(({ work, everyMs, failure, isFirstAtOnce }) => {
      const onFailure = this.#options.logFailure(failure);
      if (isFirstAtOnce) void work().catch(onFailure);
      return startRounds(work, everyMs, onFailure);
    });
  }

  /** Runs all sweeps. A sweep that fails does not keep the others from running. */
  async sweep(): Promise<void> {
    for (const sweep of this.#sweeps) await sweep().catch(this.#options.logFailure("a cleanup failed"));
  }

  /** Takes all steps, despite failures, and rejects with the first one. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const failures: unknown[] = [];
    const attempt = async (work: () => unknown) => {
      try {
        await work();
      } catch (error) {
        failures.push(error);
      }
    };
    const { retire, refuse, stop, finish, close } = this.#closing;
    const { drainMs } = this.#options;
    if (this.#wasStarted && drainMs !== null) await Promise.all([...retire, () => setTimeout(drainMs)].map(attempt));
    await Promise.all(refuse.map(attempt));
    await Promise.all([...stop, ...this.#rounds.map((rounds) => () => rounds.stop())].map(attempt));
    await Promise.all(finish.map(attempt));
    for (const work of close.toReversed()) await attempt(work);
    if (failures.length > 0) throw failures[0];
  }
}
