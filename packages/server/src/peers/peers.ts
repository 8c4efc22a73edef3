import { isRunning, type ProcessIdentity, type ProcessTable } from "@aenv/sandbox";
import type { Collection } from "../stores/collection.ts";

/** A server process in the store that it shares with its peers. */
export interface PeerRow {
  readonly id: string;
  /** The machine and folder of its sandboxes, or the group of pods in a cluster; only a server at the same location can manage them. */
  readonly location: string;
  /** The host name of the machine or the pod that it runs in. */
  readonly machine: string;
  /** With it, servers on the same machine check whether the process runs. */
  readonly process: ProcessIdentity;
  readonly startedAt: string;
  readonly seenAt: string;
  /** It shut down in order and left its sandboxes to its peers. */
  readonly hasLeft: boolean;
  /** Ids of dead servers whose sandboxes it has adopted. */
  readonly adopted: readonly string[];
  /** The server that adopts from it after its death; null until one does. */
  readonly adoptedBy: string | null;
}

export interface PeersOptions {
  readonly id: string;
  readonly location: string;
  readonly machine: string;
  readonly process: ProcessIdentity;
  readonly processes: ProcessTable;
  readonly rows: Collection<PeerRow>;
  readonly now: () => Date;
  /** No other server uses the store, so every other row is of a dead server. */
  readonly isAlone: boolean;
  /** A server on another machine without a heartbeat for this long is considered dead. */
  readonly leaseMs: number;
}

export interface OtherServers {
  /** The ids under which they own sandboxes and instances, adopted ones included. */
  readonly ids: ReadonlySet<string>;
  /** No other server is alive. */
  readonly isLast: boolean;
  /** No other server at this location is alive. */
  readonly isLastHere: boolean;
}

/** Which servers on the store are alive: this one and its peers. */
export class Peers {
  readonly id: string;
  readonly #options: PeersOptions;
  readonly #startedAt: string;
  #adopted: readonly string[] = [];
  /** The last heartbeat seen of each peer, and when it was first seen. */
  readonly #heartbeats = new Map<string, { readonly seenAt: string; readonly since: number }>();
  #readAt = 0;

  constructor(options: PeersOptions) {
    this.id = options.id;
    this.#options = options;
    this.#startedAt = options.now().toISOString();
  }

  /** The ids under which this server owns sandboxes and instances: its own, and those of adopted servers. */
  get ids(): readonly string[] {
    return [this.id, ...this.#adopted];
  }

  async heartbeat(): Promise<void> {
    const { rows, now, location, machine, process } = this.#options;
    const seenAt = now().toISOString();
    const updated = await rows.update(this.id, (row) => ({ ...row, seenAt, adopted: this.#adopted }));
    if (updated !== null) return;
    const row: PeerRow = {
      id: this.id,
      location,
      machine,
      process,
      startedAt: this.#startedAt,
      seenAt,
      hasLeft: false,
      adopted: this.#adopted,
      adoptedBy: null,
    };
    await rows.insert(this.id, row);
  }

  /**
   * Claims the dead servers of this location, and of locations without a living server. Each is claimed by one server only.
   * Returns them with the ids under which they owned sandboxes and instances.
   */
  async claimDeadServers(): Promise<{ readonly dead: readonly PeerRow[]; readonly ids: ReadonlySet<string> }> {
    const { rows } = this.#options;
    const { living, dead } = await this.#others();
    const isFree = (adopter: string | null) => adopter === null || adopter === this.id || !living.some((peer) => peer.id === adopter);
    const claimed: PeerRow[] = [];
    for (const row of dead) {
      if (!this.#isHere(row) && living.some((peer) => peer.location === row.location)) continue;
      const won = await rows.update(row.id, (now) => (isFree(now.adoptedBy) ? { ...now, adoptedBy: this.id } : null));
      if (won !== null) claimed.push(won);
    }
    return { dead: claimed, ids: new Set(claimed.flatMap(idsOf)) };
  }

  async others(): Promise<OtherServers> {
    const { living, dead } = await this.#others();
    const beingAdopted = dead.filter(({ adoptedBy }) => living.some((peer) => peer.id === adoptedBy));
    return {
      ids: new Set([...living, ...beingAdopted].flatMap(idsOf)),
      isLast: living.length === 0,
      isLastHere: !living.some((peer) => this.#isHere(peer)),
    };
  }

  /** This server and its living peers, without the ids that they have adopted. */
  async livingIds(): Promise<ReadonlySet<string>> {
    return new Set([this.id, ...(await this.#others()).living.map(({ id }) => id)]);
  }

  /**
   * Records that the sandboxes and instances of a dead server are adopted, and removes its row. Sandboxes at this location keep the dead
   * server's id as their label, so the id is remembered; of the ids that it had adopted itself, only those still in use are.
   */
  async markAdopted(dead: PeerRow, idsInUse: ReadonlySet<string>): Promise<void> {
    if (this.#isHere(dead)) {
      this.#adopted = [...new Set([...this.#adopted, dead.id, ...dead.adopted.filter((id) => idsInUse.has(id))])];
      await this.heartbeat();
    }
    await this.#options.rows.remove(dead.id);
  }

  /** Marks this server as shut down. True if another server at this location is alive and adopts from it. */
  async leave(): Promise<boolean> {
    await this.#options.rows.update(this.id, (row) => ({ ...row, hasLeft: true, adopted: this.#adopted }));
    return !(await this.others()).isLastHere;
  }

  /** Removes this server's row: there is nothing to adopt from it. */
  async remove(): Promise<void> {
    await this.#options.rows.remove(this.id);
  }

  async #others(): Promise<{ readonly living: PeerRow[]; readonly dead: PeerRow[] }> {
    const { rows, now, leaseMs } = this.#options;
    const at = now().getTime();
    // A server that has not read the rows for a while cannot tell that its peers sent no heartbeat meanwhile.
    if (at - this.#readAt > leaseMs / 2) this.#heartbeats.clear();
    const living: PeerRow[] = [];
    const dead: PeerRow[] = [];
    for await (const { value: row } of rows.each()) {
      if (row.id !== this.id) (this.#isAlive(row, at) ? living : dead).push(row);
    }
    this.#readAt = now().getTime();
    return { living, dead };
  }

  #isAlive(row: PeerRow, at: number): boolean {
    if (this.#options.isAlone || row.hasLeft) return false;
    // On this machine the process can be checked; elsewhere there are only heartbeats. Servers in pods have one location and many machines.
    if (this.#isHere(row) && row.machine === this.#options.machine) return isRunning(this.#options.processes, row.process);
    const last = this.#heartbeats.get(row.id);
    if (last?.seenAt === row.seenAt) return at - last.since < this.#options.leaseMs;
    this.#heartbeats.set(row.id, { seenAt: row.seenAt, since: at });
    return true;
  }

  #isHere(row: PeerRow): boolean {
    return row.location === this.#options.location;
  }
}

function idsOf({ id, adopted }: PeerRow): readonly string[] {
  return [id, ...adopted];
}
