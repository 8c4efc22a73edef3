import { isPlatformError } from "@aenv/contract";

/** The space for snapshots in the engine. Copies of stored snapshots in it are a cache: they are removed when space is needed. */
export class SnapshotSpace {
  #free: () => Promise<boolean> = async () => false;
  #freeing: Promise<boolean> | null = null;

  /** `free` removes what is not in use, and says whether there was any. */
  setCache(free: () => Promise<boolean>): void {
    this.#free = free;
  }

  /** Repeats work for which the engine had no space, after what is not in use was removed. */
  async use<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isPlatformError(error, "quota.exceeded")) throw error;
      // Others may need space at the same time: they wait for the same removal.
      this.#freeing ??= this.#free().finally(() => {
        this.#freeing = null;
      });
      if (!(await this.#freeing)) throw error;
      return work();
    }
  }
}
