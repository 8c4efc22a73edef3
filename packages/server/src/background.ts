import { type Rounds, startRounds } from "./lifecycle/rounds.ts";
import type { Reconciler } from "./services/reconciler.ts";
import type { TrainerServices } from "./trainer-services.ts";

export interface BackgroundOptions {
  readonly reconciler: Pick<Reconciler, "tidy" | "close">;
  readonly rollouts: Pick<TrainerServices["rollouts"], "tidy" | "close">;
  /** Each removes what is not needed any more in one part of the server. */
  readonly sweeps: readonly (() => Promise<unknown>)[];
  readonly roundMs: number;
  readonly logFailure: (message: string) => (error: unknown) => void;
}

const SWEEP_MS = 5 * 60_000;

/** The periodic work of a server, apart from the maintenance of its instances. */
export class Background {
  readonly #options: BackgroundOptions;
  #rounds: readonly Rounds[] = [];

  constructor(options: BackgroundOptions) {
    this.#options = options;
  }

  start(): void {
    const { reconciler, rollouts, roundMs, logFailure } = this.#options;
    const rollOut = { work: () => rollouts.tidy(), everyMs: roundMs, failure: "a round of the rollouts failed" };
    const sweep = { work: () => this.sweep(), everyMs: SWEEP_MS, failure: "a cleanup failed" };
    const reconcile = { work: () => reconciler.tidy(), everyMs: roundMs, failure: "a round of the services failed" };
    this.#rounds = [rollOut, sweep, reconcile].map(({ work, everyMs, failure }) => startRounds(work, everyMs, logFailure(failure)));
    void rollouts.tidy().catch(logFailure("finding rollouts to play failed"));
    void reconciler.tidy().catch(logFailure("reconciling the services failed"));
  }

  /** One that fails does not keep the others from running. */
  async sweep(): Promise<void> {
    for (const sweep of this.#options.sweeps) await sweep().catch(this.#options.logFailure("a cleanup failed"));
  }

  async stop(): Promise<void> {
    const { reconciler, rollouts } = this.#options;
    try {
      await rollouts.close();
    } finally {
      await reconciler.close();
      await Promise.all(this.#rounds.map((one) => one.stop()));
    }
  }
}
