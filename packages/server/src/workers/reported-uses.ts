import type { InstanceRow } from "../instances/row.ts";
import { isWatched } from "../instances/uses.ts";

export interface ReportedUsesOptions {
  readonly onUsed: (row: InstanceRow) => void;
  readonly onUnused: (instanceId: string) => void;
  readonly monotonicMs?: () => number;
}

interface Use {
  calls: number;
  /** When the last call ended. */
  endedAt: number;
}

/** An instance counts as used for so long after its last call, so that calls in quick succession are reported once. */
const LINGER_MS = 100;

/** Which instances a worker uses, for those that end or are frozen when they are idle. */
export class ReportedUses {
  readonly #options: ReportedUsesOptions;
  readonly #uses = new Map<string, Use>();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: ReportedUsesOptions) {
    this.#options = options;
  }

  begin(row: InstanceRow): void {
    if (!isWatched(row)) return;
    const use = this.#uses.get(row.id);
    if (use !== undefined) use.calls++;
    else this.#uses.set(row.id, { calls: 1, endedAt: 0 });
    // A frozen one is continued by the server, whatever it has been told before.
    if (use === undefined || row.isFrozen === true) this.#options.onUsed(row);
  }

  end(row: InstanceRow): void {
    const use = this.#uses.get(row.id);
    if (use === undefined) return;
    use.calls--;
    use.endedAt = this.#now();
    if (use.calls === 0) this.#timer ??= setTimeout(() => this.#sweep(), LINGER_MS).unref();
  }

  #sweep(): void {
    this.#timer = null;
    const before = this.#now() - LINGER_MS;
    let hasIdle = false;
    for (const [id, { calls, endedAt }] of this.#uses) {
      if (calls > 0) continue;
      if (endedAt > before) {
        hasIdle = true;
        continue;
      }
      this.#uses.delete(id);
      this.#options.onUnused(id);
    }
    if (hasIdle) this.#timer = setTimeout(() => this.#sweep(), LINGER_MS).unref();
  }

  #now(): number {
    return this.#options.monotonicMs?.() ?? performance.now();
  }
}
