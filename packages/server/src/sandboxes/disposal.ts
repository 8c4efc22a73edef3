import type { Sandbox } from "@aenv/sandbox";

/** Destroys sandboxes, and remembers those that could not be destroyed. */
export class Disposal {
  readonly #failed = new Set<Sandbox>();
  readonly #current = new Set<Promise<void>>();

  /** Never fails: `retry` tries again. */
  async destroy(sandbox: Sandbox): Promise<void> {
    const destroying = sandbox
      .destroy()
      .catch(() => void this.#failed.add(sandbox))
      .finally(() => this.#current.delete(destroying));
    this.#current.add(destroying);
    await destroying;
  }

  async retry(): Promise<void> {
    const left = [...this.#failed];
    this.#failed.clear();
    await Promise.all(left.map((sandbox) => this.destroy(sandbox)));
  }

  /** Whether the sandbox could not be destroyed yet. */
  holds(sandboxId: string): boolean {
    return [...this.#failed].some(({ id }) => id === sandboxId);
  }

  /** Waits for sandboxes that are being destroyed. */
  async settled(): Promise<void> {
    await Promise.all(this.#current);
  }
}
