import type { Collection } from "../stores/collection.ts";

/** A server process that shares the store with others. */
export interface ReplicaRow {
  readonly id: string;
  /** The machine and folder in which its boxes live; only a process there can look after them. */
  readonly place: string;
  readonly startedAt: string;
  readonly seenAt: string;
  /** Dead replicas whose boxes it has taken over. */
  readonly heirOf: readonly string[];
}

/** How long a replica may be silent before the others take it for dead. */
const SILENT_MS = 10_000;

export class Replicas {
  readonly id: string;
  readonly place: string;
  readonly #rows: Collection<ReplicaRow>;
  readonly #now: () => Date;
  /** With a store that only this process uses, every other replica is a dead one. */
  readonly #isAlone: boolean;

  constructor(options: { id: string; place: string; rows: Collection<ReplicaRow>; now: () => Date; isAlone: boolean }) {
    this.id = options.id;
    this.place = options.place;
    this.#rows = options.rows;
    this.#now = options.now;
    this.#isAlone = options.isAlone;
  }

  /** Says that this process lives. */
  async beat(): Promise<void> {
    const seenAt = this.#now().toISOString();
    const updated = await this.#rows.update(this.id, (row) => ({ ...row, seenAt }));
    if (updated === null) await this.#rows.insert(this.id, { id: this.id, place: this.place, startedAt: seenAt, seenAt, heirOf: [] });
  }

  /** Notes that the boxes of a dead replica are this one's now. */
  async inherit(id: string): Promise<void> {
    const dead = await this.#rows.find(id);
    const inherited = [id, ...(dead?.value.heirOf ?? [])];
    await this.#rows.update(this.id, (row) => ({ ...row, heirOf: [...new Set([...row.heirOf, ...inherited])] }));
    await this.#rows.remove(id);
  }

  /** The labels under which boxes are in good hands. */
  async inGoodHands(): Promise<Set<string>> {
    const own = await this.#rows.find(this.id);
    const names = new Set([this.id, ...(own?.value.heirOf ?? [])]);
    for (const { row, isAlive } of await this.others()) if (isAlive) for (const id of [row.id, ...row.heirOf]) names.add(id);
    return names;
  }

  /** The others, and whether they live. */
  async others(): Promise<{ row: ReplicaRow; isAlive: boolean }[]> {
    const others: { row: ReplicaRow; isAlive: boolean }[] = [];
    const now = this.#now().getTime();
    for await (const { value: row } of this.#rows.each()) {
      if (row.id === this.id) continue;
      others.push({ row, isAlive: !this.#isAlone && now - Date.parse(row.seenAt) < SILENT_MS });
    }
    return others;
  }

  /** A process that goes orderly is not looked for. */
  async leave(): Promise<void> {
    await this.#rows.remove(this.id);
  }
}
