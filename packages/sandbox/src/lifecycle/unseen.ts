import type { Sandbox } from "../engine/engine.ts";

/** Adopted sandboxes that no caller has listed yet: nobody else would remove one that ends before. */
export class Unseen<T extends Sandbox & { readonly hasExited: boolean }> {
  readonly #sandboxes = new Set<T>();

  add(sandbox: T): void {
    this.#sandboxes.add(sandbox);
  }

  /** The caller removes them from now on. */
  areListed(sandboxes: readonly T[]): void {
    for (const sandbox of sandboxes) this.#sandboxes.delete(sandbox);
  }

  /** What cannot be removed now is tried again at the next call. */
  async removeEnded(): Promise<void> {
    const ended = [...this.#sandboxes].filter(({ hasExited }) => hasExited);
    await Promise.allSettled(ended.map((sandbox) => sandbox.destroy().then(() => this.#sandboxes.delete(sandbox))));
  }
}
