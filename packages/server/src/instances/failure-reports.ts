import { isPlatformError, messageOf } from "@aenv/contract";

const ONCE_MS = 60_000;
const MAX_CAUSES = 100;

/** Reports failures, each cause at most once a minute: repeated retries must not fill the log. */
export class FailureReports {
  readonly #report: (error: unknown) => void;
  readonly #now: () => number;
  readonly #reportedAt = new Map<string, number>();

  constructor(report: (error: unknown) => void, now: () => number) {
    this.#report = report;
    this.#now = now;
  }

  note(error: unknown): void {
    // Messages of platform errors contain instance ids, so the code identifies the cause.
    const cause = isPlatformError(error) ? error.code : messageOf(error);
    const now = this.#now();
    const last = this.#reportedAt.get(cause);
    if (last !== undefined && now - last < ONCE_MS) return;
    if (this.#reportedAt.size >= MAX_CAUSES) this.#reportedAt.clear();
    this.#reportedAt.set(cause, now);
    this.#report(error);
  }
}
