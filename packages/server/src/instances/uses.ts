import type { InstanceTable } from "./instance-table.ts";
import { type InstanceRow, isLive } from "./row.ts";

export interface UsesOptions {
  readonly table: InstanceTable;
  readonly now: () => Date;
  /** Continues a frozen instance. The call itself needs not wait: it is answered when the sandbox goes on. */
  readonly thaw: (row: InstanceRow) => void;
}

/** Calls in progress, by instance, for instances that end or are frozen when they are idle. */
export class Uses {
  readonly #options: UsesOptions;
  readonly #calls = new Map<string, number>();

  constructor(options: UsesOptions) {
    this.#options = options;
  }

  has(id: string): boolean {
    return this.#calls.has(id);
  }

  /** A call begins: the instance is not idle until the call ends. */
  begin(row: InstanceRow): void {
    if (!isWatched(row)) return;
    this.#calls.set(row.id, (this.#calls.get(row.id) ?? 0) + 1);
    this.touch(row);
  }

  end(row: InstanceRow): void {
    const left = (this.#calls.get(row.id) ?? 0) - 1;
    if (left > 0) this.#calls.set(row.id, left);
    else this.#calls.delete(row.id);
    // The row is from the beginning of the call, which has continued a frozen sandbox.
    if (isWatched(row)) this.touch({ ...row, isFrozen: false });
  }

  /** Stores the last use. This is done at intervals, not for every call. */
  touch(row: InstanceRow): void {
    const { table, now, thaw } = this.#options;
    if (row.isFrozen === true) {
      thaw(row);
      return;
    }
    if (!isStale(row, now())) return;
    const touched = table.change(row.id, (latest, at) =>
      isLive(latest) && isStale(latest, at) ? { ...latest, lastUsedAt: at.toISOString() } : null,
    );
    // Another server may have frozen it since the row was read.
    touched.then((latest) => latest.isFrozen === true && thaw(latest)).catch(() => {});
  }

  /** Stores the last use of all instances with calls in progress, because another server may check their idle time. */
  async touchAll(): Promise<void> {
    for (const id of this.#calls.keys()) {
      const row = await this.#options.table.find(id);
      if (row !== null) this.touch(row);
    }
  }
}

/** Whether it matters when the instance was last used. */
export function isWatched({ idleSeconds, freezeSeconds }: InstanceRow): boolean {
  return idleSeconds !== null || freezeSeconds != null;
}

/** Whether a quarter of the time is over after which the instance counts as idle. */
function isStale({ lastUsedAt, idleSeconds, freezeSeconds }: InstanceRow, now: Date): boolean {
  const seconds = Math.min(idleSeconds ?? Number.POSITIVE_INFINITY, freezeSeconds ?? Number.POSITIVE_INFINITY);
  return now.getTime() - Date.parse(lastUsedAt) >= seconds * 250;
}
