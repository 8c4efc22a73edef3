import type { Variables } from "@aenv/contract";
import type { Sandbox } from "@aenv/sandbox";
import type { ClaimSpec, Pool } from "./pool.ts";
import { isSameVariables } from "./variables.ts";

/** A process that slots many instances of one owner's environment. */
interface Host {
  readonly sandbox: Sandbox;
  /** What the process was given when it took the bundle; null if another server opened it. */
  readonly variables: Variables | null;
  slots: number;
  /** Since when nobody sits in it. */
  emptySince: number;
  hasExited: boolean;
}

interface Group {
  readonly hosts: Host[];
  /** Hosts that are being started, so that a rush of creations does not start one each. */
  readonly opening: Set<{ readonly variables: Variables; readonly host: Promise<Host> }>;
}

export interface HostsOptions {
  readonly pool: Pool;
  /** As many hosts as cores: more would only share the same ones. */
  readonly maxHosts: number;
  /** A second host is opened when the first has this many slots taken. */
  readonly spreadAt: number;
  /** Hosts without an instance that wait for the next one, of all owners together; the longest empty go first. */
  readonly maxEmpty: number;
  /** Whether anyone sits in a sandbox, whoever seated them: other servers fork into our hosts. */
  readonly isTaken: (sandboxId: string) => Promise<boolean>;
  readonly now: () => number;
}

/**
 * Slots in shared processes: one group of hosts for each owner and bundle, so that one owner's instances never share a
 * process with another's.
 */
export class Hosts {
  readonly #options: HostsOptions;
  readonly #groups = new Map<string, Group>();

  constructor(options: HostsOptions) {
    this.#options = options;
  }

  get size(): number {
    let count = 0;
    for (const group of this.#groups.values()) count += group.hosts.length;
    return count;
  }

  /** A slot in the host with the most room; the caller gives it back with `leave`. */
  async sit(owner: string, spec: ClaimSpec, signal: AbortSignal): Promise<Sandbox> {
    const name = nameOf(owner, spec.digest);
    const group = this.#group(name);
    const host = leastTaken(group.hosts.filter(({ variables }) => variables === null || isSameVariables(variables, spec.variables)));
    const isFull =
      host === null || (host.slots >= this.#options.spreadAt && group.hosts.length + group.opening.size < this.#options.maxHosts);
    if (host !== null && (!isFull || group.opening.size > 0)) return take(host);
    const opening = [...group.opening].find(({ variables }) => isSameVariables(variables, spec.variables));
    return take(await (host === null && opening !== undefined ? opening.host : this.#open(name, group, spec, signal)));
  }

  /** Counts a slot in a host that another process of ours has opened. */
  adopt(owner: string, digest: string, sandbox: Sandbox): void {
    const name = nameOf(owner, digest);
    if (this.#find(sandbox.id) === null) this.#add(name, this.#group(name), this.#hostOf(sandbox, null));
    this.sitBeside(sandbox.id, 1);
  }

  /** Slots in the very same process, for forks. */
  sitBeside(sandboxId: string, count: number): void {
    const host = this.#find(sandboxId);
    if (host !== null) host.slots += count;
  }

  /** Gives a slot back. A host whose last slot is given back stays a while for the next episode. */
  leave(sandboxId: string): void {
    const host = this.#find(sandboxId);
    if (host === null) return;
    host.slots--;
    host.emptySince = this.#options.now();
  }

  /** Ends the hosts in which nobody has sat for so long, and those beyond the limit of empty ones. */
  async closeIdle(forMs: number): Promise<void> {
    const since = this.#options.now() - forMs;
    const empty = [...this.#groups.values()].flatMap(({ hosts }) => hosts.filter((one) => one.slots <= 0));
    empty.sort((one, other) => other.emptySince - one.emptySince);
    const ending = new Set(empty.filter(({ emptySince }, at) => at >= this.#options.maxEmpty || emptySince <= since));
    for (const [name, group] of this.#groups) {
      // While one is closed, another may be sat down in.
      for (const host of group.hosts.filter((one) => ending.has(one))) if (host.slots <= 0) await this.#close(group, host);
      if (group.hosts.length + group.opening.size === 0) this.#groups.delete(name);
    }
  }

  /** Out of sight first: nobody is to sit down in it meanwhile. */
  async #close(group: Group, host: Host): Promise<void> {
    group.hosts.splice(group.hosts.indexOf(host), 1);
    try {
      if (!(await this.#options.isTaken(host.sandbox.id))) return await host.sandbox.destroy();
    } catch {
      // Whether it is taken cannot be said now, or it could not be ended; it is met again.
    }
    host.emptySince = this.#options.now();
    if (!host.hasExited) group.hosts.push(host);
  }

  #hostOf(sandbox: Sandbox, variables: Variables | null): Host {
    return { sandbox, variables, slots: 0, emptySince: this.#options.now(), hasExited: false };
  }

  #open(name: string, group: Group, spec: ClaimSpec, signal: AbortSignal): Promise<Host> {
    const host = this.#options.pool.claim(spec, signal).then((sandbox) => {
      const opened = this.#hostOf(sandbox, spec.variables);
      this.#add(name, group, opened);
      return opened;
    });
    const opening = { variables: spec.variables, host };
    group.opening.add(opening);
    return host.finally(() => group.opening.delete(opening));
  }

  #add(name: string, group: Group, host: Host): void {
    this.#groups.set(name, group);
    group.hosts.push(host);
    void host.sandbox.exited.then(() => {
      host.hasExited = true;
      const at = group.hosts.indexOf(host);
      if (at >= 0) group.hosts.splice(at, 1);
    });
  }

  #group(name: string): Group {
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { hosts: [], opening: new Set() };
      this.#groups.set(name, group);
    }
    return group;
  }

  #find(sandboxId: string): Host | null {
    for (const group of this.#groups.values()) {
      for (const host of group.hosts) if (host.sandbox.id === sandboxId) return host;
    }
    return null;
  }
}

function nameOf(owner: string, digest: string): string {
  return `${owner}\n${digest}`;
}

function leastTaken(hosts: readonly Host[]): Host | null {
  let best: Host | null = null;
  for (const host of hosts) if (best === null || host.slots < best.slots) best = host;
  return best;
}

function take(host: Host): Sandbox {
  host.slots++;
  return host.sandbox;
}
