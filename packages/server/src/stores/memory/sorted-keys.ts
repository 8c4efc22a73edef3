import { compareText } from "../row.ts";

/** Keys in the order of their code points. */
export class SortedKeys {
  readonly #keys: string[] = [];

  get size(): number {
    return this.#keys.length;
  }

  add(key: string): void {
    const at = this.#firstNotBefore(key);
    if (this.#keys[at] !== key) this.#keys.splice(at, 0, key);
  }

  delete(key: string): void {
    const at = this.#firstNotBefore(key);
    if (this.#keys[at] === key) this.#keys.splice(at, 1);
  }

  page(after: string | undefined, limit: number): string[] {
    const from = after === undefined ? 0 : this.#firstAfter(after);
    return this.#keys.slice(from, from + limit);
  }

  #firstAfter(key: string): number {
    const at = this.#firstNotBefore(key);
    return this.#keys[at] === key ? at + 1 : at;
  }

  #firstNotBefore(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareText(this.#keys[middle] as string, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
