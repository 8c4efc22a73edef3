import { Capacity } from "@aenv/rollout";

/** Where rollouts wait for which this server has no capacity: one place for each owner, as long as the owner has rollouts here. */
export class Capacities {
  readonly #held = new Map<string, { readonly capacity: Capacity; holders: number }>();

  hold(owner: string): Disposable & { readonly capacity: Capacity } {
    const held = this.#held.get(owner) ?? { capacity: new Capacity(), holders: 0 };
    held.holders++;
    this.#held.set(owner, held);
    return {
      capacity: held.capacity,
      [Symbol.dispose]: () => {
        if (--held.holders === 0) this.#held.delete(owner);
      },
    };
  }
}
