/** How many of something are open, by instance or by sandbox. */
export class OpenCounts {
  readonly #counts = new Map<string, number>();

  /** One more is open until it is disposed. If `most` are open already, the error that `refused` makes is thrown. */
  open(key: string, most: number, refused: (count: number) => Error): Disposable {
    const count = this.#counts.get(key) ?? 0;
    if (count >= most) throw refused(count);
    this.#counts.set(key, count + 1);
    return {
      [Symbol.dispose]: () => {
        const left = (this.#counts.get(key) ?? 1) - 1;
        if (left > 0) this.#counts.set(key, left);
        else this.#counts.delete(key);
      },
    };
  }
}
