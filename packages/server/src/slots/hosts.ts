import type { EgressPolicy, Variables } from "@aenv/contract";
import type { Sandbox, SandboxRuntime } from "@aenv/sandbox";
import type { EnvironmentLimits } from "./environment-limits.ts";
import type { Occupancy } from "./occupancy.ts";
import type { ClaimSpec, Pool } from "./pool.ts";
import { isSameVariables } from "./variables.ts";

/** A process that is shared by many instances of one owner's environment. */
interface Host {
  readonly sandbox: Sandbox;
  /** The variables with which the process loaded the bundle; null if another server started it. */
  readonly variables: Variables | null;
  /** When it was started, or last found to be occupied by instances of other servers. */
  checkedAt: number;
  hasExited: boolean;
}

interface Group {
  readonly hosts: Host[];
  /** Hosts that are being started, so that concurrent creations share one start. */
  readonly starting: Set<{ readonly variables: Variables; readonly host: Promise<Host> }>;
}

export interface HostsOptions {
  readonly pool: Pool;
  readonly occupancy: Occupancy;
  /** Hosts of one owner and bundle. More than there are cores would not run faster. */
  readonly maxHosts: number;
  /** The next host is started when every host has this many occupants. */
  readonly spreadAt: number;
  /** Empty hosts that wait for the next instance, of all owners together; those empty for longest are closed first. */
  readonly maxEmpty: number;
  /** Whether any server has an instance in the sandbox: other servers fork into the hosts of this one. */
  readonly isOccupied: (sandboxId: string) => Promise<boolean>;
  readonly now: () => number;
}

/** Shared processes: one group of hosts for each owner and bundle, so that instances of two owners never share a process. */
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

  /** Gives the instance a slot in the host with the fewest occupants. */
  async occupy(instanceId: string, spec: ClaimSpec, signal: AbortSignal): Promise<Sandbox> {
    const name = groupName(spec.owner, spec.digest, spec.egress, spec.runtime, spec.template, spec.limits);
    const group = this.#group(name);
    const host = this.#leastOccupied(
      group.hosts.filter(({ variables }) => variables === null || isSameVariables(variables, spec.variables)),
    );
    const isFull =
      host === null || (this.#count(host) >= this.#options.spreadAt && group.hosts.length + group.starting.size < this.#options.maxHosts);
    // Recorded in the same tick as the choice, so that concurrent creations see it.
    if (host !== null && (!isFull || group.starting.size > 0)) return this.#add(host, instanceId);
    const starting = [...group.starting].find(({ variables }) => isSameVariables(variables, spec.variables));
    return this.#add(await (host === null && starting !== undefined ? starting.host : this.#start(name, group, spec, signal)), instanceId);
  }

  /** Registers a host that another server has started. */
  adopt(owner: string, digest: string, egress: EgressPolicy | undefined, sandbox: Sandbox): void {
    const name = groupName(owner, digest, egress);
    if (!this.#has(sandbox.id)) this.#register(name, this.#group(name), this.#hostOf(sandbox, null));
  }

  /** Closes the hosts that have been empty for so long, and those beyond the limit of empty ones. An empty host waits for the next episode. */
  async closeIdle(forMs: number): Promise<void> {
    const since = this.#options.now() - forMs;
    const empty = [...this.#groups.values()].flatMap(({ hosts }) => hosts.filter((host) => this.#count(host) === 0));
    empty.sort((one, other) => this.#emptySince(other) - this.#emptySince(one));
    const closing = new Set(empty.filter((host, at) => at >= this.#options.maxEmpty || this.#emptySince(host) <= since));
    for (const [name, group] of this.#groups) {
      // While one is closed, an instance may occupy another.
      for (const host of group.hosts.filter((one) => closing.has(one))) if (this.#count(host) === 0) await this.#close(group, host);
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

  #hostOf(sandbox: Sandbox, variables: Variables | null): Host {
    return { sandbox, variables, checkedAt: this.#options.now(), hasExited: false };
  }

  #start(name: string, group: Group, spec: ClaimSpec, signal: AbortSignal): Promise<Host> {
    const host = this.#options.pool.claim(spec, signal).then((sandbox) => {
      const started = this.#hostOf(sandbox, spec.variables);
      this.#register(name, group, started);
      return started;
    });
    const starting = { variables: spec.variables, host };
    group.starting.add(starting);
    return host.finally(() => group.starting.delete(starting));
  }

  #register(name: string, group: Group, host: Host): void {
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
      group = { hosts: [], starting: new Set() };
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

  #leastOccupied(hosts: readonly Host[]): Host | null {
    let best: Host | null = null;
    for (const host of hosts) if (best === null || this.#count(host) < this.#count(best)) best = host;
    return best;
  }
}

/** Instances with another policy for outgoing connections, another runtime, another template or other limits need another process. */
function groupName(
  owner: string,
  digest: string,
  egress: EgressPolicy = "none",
  runtime: SandboxRuntime | "" = "",
  template: string = "",
  limits: EnvironmentLimits = {},
): string {
  return `${owner}\n${digest}\n${JSON.stringify(egress)}\n${runtime}\n${template}\n${JSON.stringify(limits)}`;
}
