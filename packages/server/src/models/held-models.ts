import type { InstanceModels } from "@aenv/contract";

/** What an instance's row says about the models that it shares with its forks. */
export interface Holder {
  readonly id: string;
  readonly heldModels?: string;
}

/** Models that came in requests with their keys. They are in the memory of this server only, for as long as an instance has them. */
export class HeldModels {
  readonly #entries = new Map<string, { readonly models: InstanceModels; readonly holders: Set<string> }>();

  /** Before the row of the first instance that has them is inserted. */
  put(heldId: string, models: InstanceModels, instanceId: string): void {
    this.#entries.set(heldId, { models, holders: new Set([instanceId]) });
  }

  find(heldId: string): InstanceModels | null {
    return this.#entries.get(heldId)?.models ?? null;
  }

  /** An instance begins or ends. With the last one of its models, they are forgotten. */
  note({ id, heldModels }: Holder, isLive: boolean): void {
    const entry = heldModels === undefined ? undefined : this.#entries.get(heldModels);
    if (entry === undefined || heldModels === undefined) return;
    if (isLive) entry.holders.add(id);
    else entry.holders.delete(id);
    if (entry.holders.size === 0) this.#entries.delete(heldModels);
  }
}
