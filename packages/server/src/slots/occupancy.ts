import type { Sandbox, SandboxExit } from "@aenv/sandbox";

interface Entry {
  readonly sandbox: Sandbox;
  readonly instanceIds: Set<string>;
  /** When an instance last left it; null if none has. */
  releasedAt: number | null;
}

export interface OccupancyOptions {
  /** Called when a sandbox ends, with the instances that occupied it. */
  readonly onExit: (sandbox: Sandbox, instanceIds: readonly string[], exit: SandboxExit) => void;
  readonly now: () => number;
}

/** Which instances occupy which sandboxes of this server. A sandbox is known from its first instance until it ends. */
export class Occupancy {
  readonly #options: OccupancyOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: OccupancyOptions) {
    this.#options = options;
  }

  find(sandboxId: string): Sandbox | null {
    return this.#entries.get(sandboxId)?.sandbox ?? null;
  }

  isOccupant(sandboxId: string, instanceId: string): boolean {
    return this.#entries.get(sandboxId)?.instanceIds.has(instanceId) ?? false;
  }

  count(sandboxId: string): number {
    return this.#entries.get(sandboxId)?.instanceIds.size ?? 0;
  }

  releasedAt(sandboxId: string): number | null {
    return this.#entries.get(sandboxId)?.releasedAt ?? null;
  }

  add(sandbox: Sandbox, instanceId: string): void {
    const known = this.#entries.get(sandbox.id);
    if (known !== undefined) {
      known.instanceIds.add(instanceId);
      return;
    }
    const entry: Entry = { sandbox, instanceIds: new Set([instanceId]), releasedAt: null };
    this.#entries.set(sandbox.id, entry);
    void sandbox.exited.then((exit) => {
      // After `clear` the sandbox is not managed here any more.
      if (this.#entries.delete(sandbox.id)) this.#options.onExit(sandbox, [...entry.instanceIds], exit);
    });
  }

  /** Forks that run in the sandbox of their parent; ignored if the sandbox is another server's. */
  addForks(sandboxId: string, instanceIds: readonly string[]): void {
    const entry = this.#entries.get(sandboxId);
    for (const id of instanceIds) entry?.instanceIds.add(id);
  }

  release(sandboxId: string, instanceId: string): void {
    const entry = this.#entries.get(sandboxId);
    if (entry?.instanceIds.delete(instanceId)) entry.releasedAt = this.#options.now();
  }

  clear(): void {
    this.#entries.clear();
  }
}
