import type { Collection } from "../stores/collection.ts";
import { isRunning } from "./process-identity.ts";

/** A server process that shares the store with others. */
export interface ReplicaRow {
  readonly id: string;
  /** The machine and folder in which its sandboxes live; only a process there can look after them. */
  readonly place: string;
  /** The process itself, as those on the same machine can look for it. */
  readonly process: string;
  readonly startedAt: string;
  readonly seenAt: string;
  /** It went orderly and left what it kept to the others. */
  readonly hasLeft: boolean;
  /** Dead replicas from which it has taken over. */
  readonly heirOf: readonly string[];
  /** Who takes over from it; null while nobody does. */
  readonly heir: string | null;
}

export interface ReplicasOptions {
  readonly id: string;
  readonly place: string;
  readonly process: string;
  readonly rows: Collection<ReplicaRow>;
  readonly now: () => Date;
  /** With a store that only this process uses, every other replica is a dead one. */
  readonly isAlone: boolean;
  /** How long a replica elsewhere may be silent before it is taken for dead. */
  readonly silentMs: number;
}

export interface Hands {
  readonly others: ReadonlySet<string>;
  readonly isLast: boolean;
  readonly isLastHere: boolean;
}

/** Who keeps the instances: this process and those that share its store. */
export class Replicas {
  readonly id: string;
  readonly #options: ReplicasOptions;
  readonly #startedAt: string;
  #heirOf: readonly string[] = [];
  /** What the others were last heard to say, and since when they have said nothing else. */
  readonly #heard = new Map<string, { readonly seenAt: string; readonly since: number }>();
  #listenedAt = 0;

  constructor(options: ReplicasOptions) {
    this.id = options.id;
    this.#options = options;
    this.#startedAt = options.now().toISOString();
  }

  /** The names under which sandboxes and instances are kept by this process. */
  get names(): readonly string[] {
    return [this.id, ...this.#heirOf];
  }

  /** Says that this process lives. */
  async beat(): Promise<void> {
    const { rows, now, place, process } = this.#options;
    const seenAt = now().toISOString();
    const updated = await rows.update(this.id, (row) => ({ ...row, seenAt, heirOf: this.#heirOf }));
    if (updated !== null) return;
    const row = { id: this.id, place, process, startedAt: this.#startedAt, seenAt, hasLeft: false, heirOf: this.#heirOf, heir: null };
    await rows.insert(this.id, row);
  }

  /**
   * Takes over from the dead: from those of this place, and from those of places where nobody is left. Each goes to one
   * heir only. Answers the names under which they kept what is now to be looked after.
   */
  async claimDead(): Promise<{ readonly dead: readonly ReplicaRow[]; readonly names: ReadonlySet<string> }> {
    const { rows } = this.#options;
    const { living, dead } = await this.#others();
    const isFree = (heir: string | null) => heir === null || heir === this.id || !living.some((one) => one.id === heir);
    const claimed: ReplicaRow[] = [];
    for (const row of dead) {
      if (!this.#isHere(row) && living.some((one) => one.place === row.place)) continue;
      const won = await rows.update(row.id, (now) => (isFree(now.heir) ? { ...now, heir: this.id } : null));
      if (won !== null) claimed.push(won);
    }
    return { dead: claimed, names: new Set(claimed.flatMap(namesOf)) };
  }

  /** The names under which others keep something, and whether there are others at all: anywhere, and at this place. */
  async hands(): Promise<Hands> {
    const { living, dead } = await this.#others();
    const inHand = dead.filter(({ heir }) => living.some((one) => one.id === heir));
    return {
      others: new Set([...living, ...inHand].flatMap(namesOf)),
      isLast: living.length === 0,
      isLastHere: !living.some((one) => this.#isHere(one)),
    };
  }

  /**
   * Notes that what a dead replica kept is looked after. Its sandboxes, if they are here, bear its name for as long as they live;
   * of the names that it had inherited itself, only those in use are remembered.
   */
  async inherit(dead: ReplicaRow, inUse: ReadonlySet<string>): Promise<void> {
    if (this.#isHere(dead)) {
      this.#heirOf = [...new Set([...this.#heirOf, dead.id, ...dead.heirOf.filter((name) => inUse.has(name))])];
      await this.beat();
    }
    await this.#options.rows.remove(dead.id);
  }

  /** Says that this process goes and keeps nothing any more. True if another at this place stays and takes over from it. */
  async leave(): Promise<boolean> {
    await this.#options.rows.update(this.id, (row) => ({ ...row, hasLeft: true, heirOf: this.#heirOf }));
    return !(await this.hands()).isLastHere;
  }

  /** Takes this process off the list: it has left nothing to anyone. */
  async forget(): Promise<void> {
    await this.#options.rows.remove(this.id);
  }

  async #others(): Promise<{ readonly living: ReplicaRow[]; readonly dead: ReplicaRow[] }> {
    const { rows, now, silentMs } = this.#options;
    const at = now().getTime();
    // Who has not listened for a while cannot say that the others were silent.
    if (at - this.#listenedAt > silentMs / 2) this.#heard.clear();
    const living: ReplicaRow[] = [];
    const dead: ReplicaRow[] = [];
    for await (const { value: row } of rows.each()) {
      if (row.id !== this.id) (this.#isAlive(row, at) ? living : dead).push(row);
    }
    this.#listenedAt = now().getTime();
    return { living, dead };
  }

  #isAlive(row: ReplicaRow, at: number): boolean {
    if (this.#options.isAlone || row.hasLeft) return false;
    // Of a process on this machine we know; of one elsewhere we only hear.
    if (this.#isHere(row)) return isRunning(row.process);
    const heard = this.#heard.get(row.id);
    if (heard?.seenAt === row.seenAt) return at - heard.since < this.#options.silentMs;
    this.#heard.set(row.id, { seenAt: row.seenAt, since: at });
    return true;
  }

  #isHere(row: ReplicaRow): boolean {
    return row.place === this.#options.place;
  }
}

function namesOf({ id, heirOf }: ReplicaRow): readonly string[] {
  return [id, ...heirOf];
}
