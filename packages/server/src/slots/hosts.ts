import { createHash } from "node:crypto";
import { isPlatformError, pauseAfter } from "@aenv/contract";
import type { Sandbox } from "@aenv/sandbox";
import type { Occupancy } from "./occupancy.ts";
import type { BundleRequest, ProgramRequest } from "./start-request.ts";

/** The process that an instance shares with others. */
export interface HostKind {
  /** Names what all instances of the process have in common. */
  readonly group: string;
  start(signal: AbortSignal): Promise<Sandbox>;
}

/** A process that is shared by many instances of one owner's environment. */
interface Host {
  readonly sandbox: Sandbox;
  /** When it was started, or last found to be occupied by instances of other servers. */
  checkedAt: number;
  hasExited: boolean;
}

/** A host that is being started. */
interface StartingHost {
  readonly host: Promise<Host>;
  /** The signal of the instance that began it. */
  readonly signal: AbortSignal;
  /** Instances that will occupy it. */
  waiting: number;
}

interface Group {
  readonly hosts: Host[];
  readonly starting: Set<StartingHost>;
  /** Starts that failed in a row, and when the next one is tried while there are other hosts. */
  failures: number;
  retryAt: number;
}

export interface HostsOptions {
  readonly occupancy: Occupancy;
  /** Hosts of one group. */
  readonly maxHosts: number;
  /** The next host is started when there are this many occupants for each host. */
  readonly spreadAt: number;
  /** Empty hosts that wait for the next instance, of all owners together; those empty for longest are closed first. */
  readonly maxEmpty: number;
  /** Whether any server has an instance in the sandbox: other servers fork into the hosts of this one. */
  readonly isOccupied: (sandboxId: string) => Promise<boolean>;
  /** Called when another host could not be started, while those that run serve all instances. */
  readonly onFailure: (error: unknown) => void;
  readonly now: () => number;
}

/** An instance's place among the shared processes. */
export interface HostPlace {
  readonly sandbox: Sandbox;
  /** See `HostKind`. */
  readonly group: string;
}

/** Shared processes, in groups whose instances may share a process. Those of two owners never do. */
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

  /** Gives the instance a slot in the host with the fewest occupants. It waits for a host only if none runs. */
  async occupy(instanceId: string, kind: HostKind, signal: AbortSignal): Promise<HostPlace> {
    const { group: name } = kind;
    const group = this.#group(name);
    const start = () => this.#start(kind, group, signal);
    if (this.#needsHost(group)) start();
    return { sandbox: await this.#occupy(group, instanceId, start, signal), group: name };
  }

  async #occupy(group: Group, instanceId: string, start: () => void, signal: AbortSignal): Promise<Sandbox> {
    for (let failure: unknown; ; ) {
      // Recorded in the same tick as the choice, so that concurrent creations see it.
      const host = this.#leastOccupied(group);
      if (host !== null) return this.#add(host, instanceId);
      const next = leastAwaited(group);
      if (next === null) throw failure;
      next.waiting++;
      try {
        return this.#add(await next.host, instanceId);
      } catch (error) {
        failure = error;
        // The instance that began the start was cancelled, or had less time left.
        if (next.signal.aborted && !signal.aborted && this.#needsHost(group)) start();
      } finally {
        next.waiting--;
      }
    }
  }

  #needsHost({ hosts, starting, retryAt }: Group): boolean {
    const { maxHosts, spreadAt, now } = this.#options;
    const count = hosts.length + starting.size;
    if (count === 0) return true;
    let occupants = 0;
    for (const host of hosts) occupants += this.#count(host);
    for (const { waiting } of starting) occupants += waiting;
    return count < maxHosts && occupants >= count * spreadAt && now() >= retryAt;
  }

  /** Registers a host that another server has started. */
  adopt(group: string, sandbox: Sandbox): void {
    if (!this.#has(sandbox.id)) this.#register(group, this.#group(group), sandbox);
  }

  /** Closes the hosts that have been empty for so long, and those beyond the limit of empty ones. An empty host waits for the next episode. */
  async closeIdle(forMs: number): Promise<void> {
    const since = this.#options.now() - forMs;
    const empty = [...this.#groups.values()].flatMap(({ hosts }) => hosts.filter((host) => this.#count(host) === 0));
    empty.sort((one, other) => this.#emptySince(other) - this.#emptySince(one));
    const closing = new Set(empty.filter((host, at) => at >= this.#options.maxEmpty || this.#emptySince(host) <= since));
    for (const [name, group] of this.#groups) {
      // While those of one group are closed, an instance may occupy one of another.
      const hosts = group.hosts.filter((host) => closing.has(host) && this.#count(host) === 0);
      await Promise.all(hosts.map((host) => this.#close(group, host)));
      if (group.hosts.length + group.starting.size === 0) this.#groups.delete(name);
    }
  }

  /** Removed from its group first, so that no instance occupies it meanwhile. */
  async #close(group: Group, host: Host): Promise<void> {
    group.hosts.splice(group.hosts.indexOf(host), 1);
    try {
      if (!(await this.#options.isOccupied(host.sandbox.id))) return await host.sandbox.destroy();
    } catch {
      // The store is unavailable, or the sandbox could not be destroyed; both are tried again later.
    }
    host.checkedAt = this.#options.now();
    if (!host.hasExited) group.hosts.push(host);
  }

  #start(kind: HostKind, group: Group, signal: AbortSignal): void {
    const host = kind.start(signal).then(
      (sandbox) => {
        group.starting.delete(starting);
        group.failures = 0;
        return this.#register(kind.group, group, sandbox);
      },
      (error: unknown) => {
        group.starting.delete(starting);
        group.failures++;
        group.retryAt = this.#options.now() + pauseAfter(group.failures);
        throw error;
      },
    );
    const starting: StartingHost = { host, signal, waiting: 0 };
    group.starting.add(starting);
    // Without a waiting instance, nobody else hears of it.
    host.catch((error: unknown) => {
      if (group.hosts.length > 0 && !isPlatformError(signal.reason, "server.draining")) this.#options.onFailure(error);
    });
  }

  #register(name: string, group: Group, sandbox: Sandbox): Host {
    const host: Host = { sandbox, checkedAt: this.#options.now(), hasExited: false };
    this.#groups.set(name, group);
    group.hosts.push(host);
    void sandbox.exited.then(() => {
      host.hasExited = true;
      const at = group.hosts.indexOf(host);
      if (at >= 0) group.hosts.splice(at, 1);
      // Its files are removed with its occupants, if it ever had one.
      if (this.#options.occupancy.find(sandbox.id) === null) void sandbox.destroy().catch(() => {});
    });
    return host;
  }

  #group(name: string): Group {
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { hosts: [], starting: new Set(), failures: 0, retryAt: 0 };
      this.#groups.set(name, group);
    }
    return group;
  }

  #has(sandboxId: string): boolean {
    return [...this.#groups.values()].some(({ hosts }) => hosts.some(({ sandbox }) => sandbox.id === sandboxId));
  }

  #add({ sandbox }: Host, instanceId: string): Sandbox {
    this.#options.occupancy.add(sandbox, instanceId);
    return sandbox;
  }

  #count({ sandbox }: Host): number {
    return this.#options.occupancy.count(sandbox.id);
  }

  #emptySince({ sandbox, checkedAt }: Host): number {
    return Math.max(checkedAt, this.#options.occupancy.releasedAt(sandbox.id) ?? 0);
  }

  #leastOccupied({ hosts }: Group): Host | null {
    let best: Host | null = null;
    for (const host of hosts) if (best === null || this.#count(host) < this.#count(best)) best = host;
    return best;
  }
}

function leastAwaited({ starting }: Group): StartingHost | null {
  let best: StartingHost | null = null;
  for (const one of starting) if (best === null || one.waiting < best.waiting) best = one;
  return best;
}

/** Group of processes that load a bundle. It is stored in rows, so that the next server puts new instances only into hosts in which they belong. */
export function bundleGroup({ owner, digest, variables, egress = "none", runtime, template, resources = {} }: BundleRequest): string {
  return nameOf([owner, digest, sorted(variables), egress, runtime ?? null, template ?? null, sorted(resources)]);
}

/** The same of processes that run a program. */
export function programGroup({ owner, program, variables, egress = "none", runtime, resources = {} }: ProgramRequest): string {
  return nameOf(["program", owner, program, sorted(variables ?? {}), egress, runtime ?? null, sorted(resources)]);
}

function nameOf(parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

function sorted(values: object): [string, unknown][] {
  return Object.entries(values).sort(([one], [other]) => (one < other ? -1 : 1));
}
