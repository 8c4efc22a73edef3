import { setTimeout as pause } from "node:timers/promises";
import { isPlatformError, messageOf } from "@aenv/contract";
import type { Sandbox } from "@aenv/sandbox";
import type { Slots } from "../slots/slots.ts";
import type { TaskSandboxes } from "../task-sandboxes/task-sandboxes.ts";
import type { InstanceTable } from "./instance-table.ts";
import { type InstanceRow, withEvent } from "./row.ts";

export interface FreezerOptions {
  readonly table: InstanceTable;
  readonly slots: Pick<Slots, "find">;
  /** The sandboxes that the code of instances has opened. They are frozen after it, and continued before it. */
  readonly tasks: Pick<TaskSandboxes, "freeze" | "thaw" | "of">;
  /** Whether a call of this server is in progress. */
  readonly isInUse: (id: string) => boolean;
  /** How long the CPU use of an idle sandbox is measured before it is frozen. */
  readonly measureMs: number;
  readonly monotonicMs: () => number;
}

/** CPU time that was saved so far, and how long sandboxes were frozen in total. */
export interface FreezerTotals {
  readonly savedCpuMs: number;
  readonly frozenMs: number;
}

interface Frozen {
  readonly since: number;
  /** CPU time per millisecond that it used while it was idle. */
  readonly cpuRate: number;
}

/**
 * Freezes idle sandboxes and continues them at the next call. The row says that a sandbox is frozen before it is, and until it is not, so
 * every server of the store knows which sandboxes it has to continue.
 */
export class Freezer {
  readonly #options: FreezerOptions;
  readonly #frozen = new Map<string, Frozen>();
  readonly #freezing = new Map<string, Promise<void>>();
  readonly #thawing = new Map<string, Promise<void>>();
  #savedCpuMs = 0;
  #frozenMs = 0;

  constructor(options: FreezerOptions) {
    this.#options = options;
  }

  get totals(): FreezerTotals {
    return { savedCpuMs: this.#savedCpuMs, frozenMs: this.#frozenMs };
  }

  /** Freezes an instance unless it has been used since its row was read. */
  async freeze(row: InstanceRow): Promise<void> {
    const { slots, isInUse } = this.#options;
    const sandbox = row.slot === null ? null : await slots.find(row.slot.sandboxId);
    if (sandbox?.freezing === undefined) return this.#giveUp(row, "its sandbox cannot be frozen on this server");
    const cpuRate = await this.#cpuRate([sandbox, ...this.#options.tasks.of(row.id)]);
    if (isInUse(row.id)) return;
    const freezing = this.#freeze(row, sandbox, cpuRate).finally(() => this.#freezing.delete(row.id));
    this.#freezing.set(row.id, freezing);
    await freezing;
  }

  /** Continues an instance in use, and waits until it runs. It is not frozen until the use ends. */
  async settle(row: InstanceRow): Promise<void> {
    // A freeze that began before the use is undone by its last step.
    await this.#freezing.get(row.id)?.catch(() => {});
    const latest = await this.#options.table.find(row.id);
    if (latest?.isFrozen === true) await this.thaw(latest);
  }

  async #freeze(row: InstanceRow, sandbox: Sandbox, cpuRate: number): Promise<void> {
    const { table, isInUse, monotonicMs } = this.#options;
    if (!(await this.#mark(row, true))) return;
    this.#frozen.set(row.id, { since: monotonicMs(), cpuRate });
    try {
      await sandbox.freezing?.freeze();
      await this.#options.tasks.freeze(row.id);
    } catch (error) {
      // A call that came in between has continued the sandbox while it was being frozen: that is no failure.
      const isFailure = !isInUse(row.id) && (await table.find(row.id))?.isFrozen === true;
      await this.thaw(row);
      return isFailure ? this.#giveUp(row, messageOf(error)) : undefined;
    }
    // A call of another server may have come in between, and continued the sandbox before it was frozen.
    if (isInUse(row.id) || (await table.find(row.id))?.isFrozen !== true) await this.thaw(row);
  }

  /** Continues an instance. Concurrent calls share one attempt. */
  thaw(row: InstanceRow): Promise<void> {
    let thawing = this.#thawing.get(row.id);
    if (thawing === undefined) {
      thawing = this.#thaw(row).finally(() => this.#thawing.delete(row.id));
      this.#thawing.set(row.id, thawing);
    }
    return thawing;
  }

  async #thaw(row: InstanceRow): Promise<void> {
    const sandbox = row.slot === null ? null : await this.#options.slots.find(row.slot.sandboxId);
    // Before the row changes, so that the call goes on at once; and after it, because another server may have frozen it until then.
    const thaw = async () => {
      if (row.taskSandboxes !== undefined) await this.#options.tasks.thaw(row.id);
      await sandbox?.freezing?.thaw();
    };
    await thaw();
    this.#account(row.id);
    await this.#mark(row, false);
    await thaw();
  }

  /** Whether the row was changed: not if the instance has ended or, for freezing, was used meanwhile. */
  async #mark(row: InstanceRow, isFrozen: boolean): Promise<boolean> {
    const isUnchanged = (latest: InstanceRow) => latest.lastUsedAt === row.lastUsedAt && latest.slot?.sandboxId === row.slot?.sandboxId;
    try {
      await this.#options.table.change(row.id, (latest, now) => {
        if (latest.status !== "Running" || (latest.isFrozen === true) === isFrozen) return null;
        if (isFrozen) return isUnchanged(latest) ? { ...latest, isFrozen } : null;
        return { ...latest, isFrozen, lastUsedAt: now.toISOString() };
      });
      return true;
    } catch (error) {
      if (isPlatformError(error, "instance.not_found")) return false;
      throw error;
    }
  }

  /** The instance is not frozen any more by itself, so that its other deadlines are met. */
  async #giveUp(row: InstanceRow, why: string): Promise<void> {
    const what = `not frozen while it is idle: ${why}`;
    await this.#options.table
      .change(row.id, (latest, now) => (latest.status === "Running" ? { ...withEvent(latest, what, now), freezeSeconds: null } : null))
      .catch((error: unknown) => {
        if (!isPlatformError(error, "instance.not_found")) throw error;
      });
  }

  /** The processor time that these sandboxes use together, as a share of the time that passes. */
  async #cpuRate(sandboxes: readonly Sandbox[]): Promise<number> {
    const { measureMs, monotonicMs } = this.#options;
    const measured = sandboxes.flatMap(({ freezing }) => freezing ?? []);
    if (measured.length === 0 || measureMs === 0) return 0;
    // A sandbox that has ended meanwhile has used nothing that could be saved.
    const read = () => Promise.all(measured.map((freezing) => freezing.cpuMs().catch(() => null)));
    const began = monotonicMs();
    const before = await read();
    await pause(measureMs, undefined, { ref: false });
    const after = await read();
    const used = after.reduce<number>((sum, ms, at) => sum + Math.max(0, (ms ?? 0) - (before[at] ?? ms ?? 0)), 0);
    return used / Math.max(1, monotonicMs() - began);
  }

  #account(id: string): void {
    const frozen = this.#frozen.get(id);
    if (frozen === undefined) return;
    this.#frozen.delete(id);
    const ms = this.#options.monotonicMs() - frozen.since;
    this.#frozenMs += ms;
    this.#savedCpuMs += ms * frozen.cpuRate;
  }
}
