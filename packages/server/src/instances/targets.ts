import type { SandboxAddress } from "@aenv/sandbox";
import type { Collection } from "../stores/collection.ts";
import type { InstanceRow } from "./row.ts";

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

/** Instances by id and by agent key, from memory; the store is asked only for those not seen here lately. */
export class Targets {
  readonly #rows: Collection<InstanceRow>;
  readonly #maxAgeMs: number;
  readonly #byId = new Map<string, Known>();
  readonly #idByAgentKey = new Map<string, string>();

  /** Memory is believed for ever if nobody else changes the rows, and for a moment if other servers do. */
  constructor(rows: Collection<InstanceRow>, maxAgeMs = Number.POSITIVE_INFINITY) {
    this.#rows = rows;
    this.#maxAgeMs = maxAgeMs;
  }

  /** Takes note of a row as it is now. */
  note(row: InstanceRow): void {
    this.#byId.delete(row.id);
    this.#byId.set(row.id, { row, notedAt: performance.now() });
    this.#idByAgentKey.set(row.agentKey, row.id);
    if (this.#byId.size <= REMEMBERED) return;
    const [oldest] = this.#byId.values();
    if (oldest !== undefined) this.#forget(oldest.row);
  }

  /** What memory says at once, or null if the store must be asked. */
  peek(id: string): Target | null {
    const known = this.#byId.get(id);
    if (known?.row.status !== "Running" || performance.now() - known.notedAt > this.#maxAgeMs) return null;
    return targetOf(known.row);
  }

  async find(id: string): Promise<Target> {
    const before = this.#byId.get(id);
    const row = await this.#rows.find(id);
    const known = this.#byId.get(id);
    // What we changed ourselves while we asked is newer than the answer.
    if (known !== undefined && known !== before) return targetOf(known.row);
    if (row === null) {
      if (known !== undefined) this.#forget(known.row);
      return { kind: "unknown" };
    }
    this.note(row.value);
    return targetOf(row.value);
  }

  async findByAgentKey(key: string): Promise<Target> {
    const known = this.#idByAgentKey.get(key);
    if (known !== undefined) return this.peek(known) ?? (await this.find(known));
    const [row] = await this.#rows.list({ where: { index: "agent", value: key }, limit: 1 });
    if (row === undefined) return { kind: "unknown" };
    this.note(row.value);
    return targetOf(row.value);
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
