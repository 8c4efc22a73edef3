import type { SandboxAddress } from "@aenv/sandbox";
import type { Collection } from "../stores/collection.ts";
import { type InstanceRow, isLive } from "./row.ts";

/** Where a call for an instance goes, or why it cannot. */
export type Target =
  | {
      readonly kind: "ready";
      readonly instanceId: string;
      readonly sandboxId: string;
      readonly address: SandboxAddress;
      readonly prefix: string;
      readonly owner: string;
      readonly row: InstanceRow;
    }
  | { readonly kind: "starting" | "gone" | "failed"; readonly row: InstanceRow }
  | { readonly kind: "unknown" };

const REMEMBERED = 100_000;

interface Known {
  readonly row: InstanceRow;
  readonly notedAt: number;
}

/** Reads of one row that have not ended yet. */
interface Reading {
  count: number;
  /** The row as it was changed here meanwhile. */
  changed: InstanceRow | null;
}

/**
 * Finds instances by id and by agent key: in memory, or in the store if the row in memory is missing or too old. Rows of ended instances are
 * not kept in memory: they have no calls, and a busy server ends thousands in the minutes for which the store has them.
 */
export class Targets {
  readonly #rows: Collection<InstanceRow>;
  readonly #maxAgeMs: number;
  readonly #byId = new Map<string, Known>();
  readonly #idByAgentKey = new Map<string, string>();
  readonly #reading = new Map<string, Reading>();

  /** Rows in memory are used for `maxAgeMs`; other servers may change them in the store. */
  constructor(rows: Collection<InstanceRow>, maxAgeMs = Number.POSITIVE_INFINITY) {
    this.#rows = rows;
    this.#maxAgeMs = maxAgeMs;
  }

  /** How many rows are in memory. */
  get size(): number {
    return this.#byId.size;
  }

  /** Remembers the current row. */
  note(row: InstanceRow): void {
    const reading = this.#reading.get(row.id);
    if (reading !== undefined) reading.changed = row;
    this.#byId.delete(row.id);
    if (!isLive(row)) {
      this.#idByAgentKey.delete(row.agentKey);
      return;
    }
    this.#byId.set(row.id, { row, notedAt: performance.now() });
    this.#idByAgentKey.set(row.agentKey, row.id);
    if (this.#byId.size <= REMEMBERED) return;
    const [oldest] = this.#byId.values();
    if (oldest !== undefined) this.#forget(oldest.row);
  }

  /** A row as the store has it. If it has ended, calls are refused at once: another server may have ended it since it was noted here. */
  noteRead(row: InstanceRow): void {
    const known = this.#byId.get(row.id)?.row;
    if (known?.agentKey === row.agentKey && !isLive(row)) this.note(row);
  }

  /** The target from memory, or null if the store must be read. */
  peek(id: string): Target | null {
    const known = this.#byId.get(id);
    if (known?.row.status !== "Running" || performance.now() - known.notedAt > this.#maxAgeMs) return null;
    return targetOf(known.row);
  }

  async find(id: string): Promise<Target> {
    const { row, changed } = await this.#read(id);
    // A change on this server during the read is newer than its result.
    if (changed !== null) return targetOf(changed);
    if (row === null) {
      const known = this.#byId.get(id);
      if (known !== undefined) this.#forget(known.row);
      return { kind: "unknown" };
    }
    this.note(row);
    return targetOf(row);
  }

  async findByAgentKey(key: string): Promise<Target> {
    const known = this.#idByAgentKey.get(key);
    if (known !== undefined) return this.peek(known) ?? (await this.find(known));
    const [row] = await this.#rows.list({ where: { index: "agent", value: key }, limit: 1 });
    if (row === undefined) return { kind: "unknown" };
    // Read again by its id: a change during the first read would be overwritten by its result.
    const { id, agentKey } = row.value;
    const target = this.peek(id) ?? (await this.find(id));
    return target.kind === "unknown" || target.row.agentKey === agentKey ? target : { kind: "unknown" };
  }

  async #read(id: string): Promise<{ readonly row: InstanceRow | null; readonly changed: InstanceRow | null }> {
    const reading = this.#reading.get(id) ?? { count: 0, changed: null };
    this.#reading.set(id, reading);
    reading.count++;
    try {
      const row = (await this.#rows.find(id))?.value ?? null;
      return { row, changed: reading.changed };
    } finally {
      if (--reading.count === 0) this.#reading.delete(id);
    }
  }

  #forget(row: InstanceRow): void {
    this.#byId.delete(row.id);
    this.#idByAgentKey.delete(row.agentKey);
  }
}

function targetOf(row: InstanceRow): Target {
  switch (row.status) {
    case "Running":
      if (row.slot === null) return { kind: "failed", row };
      return {
        kind: "ready",
        instanceId: row.id,
        sandboxId: row.slot.sandboxId,
        address: row.slot.address,
        prefix: row.slot.prefix,
        owner: row.owner,
        row,
      };
    case "Pending":
    case "Creating":
      return { kind: "starting", row };
    case "Failed":
      return { kind: "failed", row };
    case "Terminated":
      return { kind: "gone", row };
  }
}
