import { clampDelayMs } from "@aenv/contract";
import { LimitReached } from "../player/limits.ts";

/** 24 days. A longer timer would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** What may be added in total: an endpoint that asks for pauses again and again does not make an episode endless. */
const LONGEST_EXTENSION_MS = 30 * 60_000;

/** Aborts its signal when the agent's time is up. Time that is not the agent's may be added while it runs. */
export class TimeLimit implements Disposable {
  readonly #controller = new AbortController();
  readonly #now: () => number;
  readonly #reason: LimitReached;
  #endsAt: number;
  #extensionLeftMs = LONGEST_EXTENSION_MS;
  #timer: NodeJS.Timeout | undefined;

  constructor(ms: number, now: () => number) {
    this.#now = now;
    this.#reason = new LimitReached("time_limit", `the agent has had its ${ms / 1_000} s`);
    this.#endsAt = now() + ms;
    this.#start();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  extend(ms: number): void {
    const added = clampDelayMs(ms, this.#extensionLeftMs);
    this.#extensionLeftMs -= added;
    this.#endsAt += added;
    this.#start();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => this.#controller.abort(this.#reason),
      Math.min(LONGEST_TIMER_MS, Math.max(0, this.#endsAt - this.#now())),
    );
  }
}
