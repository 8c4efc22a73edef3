import { existsSync } from "node:fs";
import { join } from "node:path";
import { type EgressPolicy, PlatformError } from "@aenv/contract";
import type { RefusedConnection } from "../engine/engine.ts";
import type { SandboxNetwork } from "../network/held-network.ts";
import { Networks, type NetworksOptions } from "../network/networks.ts";
import { BridgeCables } from "./bridge-cables.ts";
import { type ContainerKind, egressProblem, noNetworkLater } from "./checks.ts";
import type { Daemon } from "./daemon.ts";
import { NAME_SERVER } from "./egress-hint.ts";
import type { DockerNetworks } from "./networks.ts";
import { filterProblem } from "./packet-filter.ts";
import type { DockerRecord } from "./record.ts";
import type { DockerSandbox } from "./sandbox.ts";

export interface EgressOptions extends Pick<NetworksOptions, "subnet" | "resolve"> {
  readonly homeId: string;
  /** Folder of the engine. */
  readonly folder: string;
  /** Socket of the daemon. */
  readonly socket: string;
  readonly networks: DockerNetworks;
  readonly onRefused?: ((refused: RefusedConnection) => void) | undefined;
  readonly sandboxes: () => Iterable<DockerSandbox>;
  /** The records of all sandboxes of the home, also of other servers. */
  readonly records: () => readonly DockerRecord[];
  /** Written before what it names exists: what no record names would not be removed. */
  readonly write: (sandbox: DockerSandbox, change: Partial<DockerRecord>) => void;
}

/** What a container is created with. */
export interface ContainerEgress {
  /** The network of the daemon that leads out; null for none. */
  readonly network: string | null;
  /** The only name servers that it may ask; null for those of the machine. */
  readonly nameServers: readonly string[] | null;
}

/**
 * The outgoing connections of a home's containers. Where this machine can filter their packets, each container with connections has a network
 * of its own, with the rules and the name server that the oci engine uses. Elsewhere they can only have all connections or none.
 */
export class DockerEgress {
  readonly #options: EgressOptions;
  readonly #folder: string;
  #opened: Promise<Networks> | undefined;
  #hasRemovedLeft = false;

  constructor(options: EgressOptions) {
    this.#options = options;
    this.#folder = join(options.folder, "networks");
  }

  /** Why a container cannot have these policies, one after the other; null if it can. */
  problem(policies: readonly EgressPolicy[], kind: Omit<ContainerKind, "filterProblem">): string | null {
    return egressProblem(policies, { ...kind, filterProblem: filterProblem(this.#options.socket) });
  }

  /** To be called before the container is created. */
  async prepare(sandbox: DockerSandbox, policy: EgressPolicy, { isPodman }: Daemon): Promise<ContainerEgress> {
    const { networks, write } = this.#options;
    const why = filterProblem(this.#options.socket);
    const problem = egressProblem([policy], { runtime: sandbox.record.runtime, isPodman, filterProblem: why });
    if (problem !== null) throw unsupported(sandbox, problem);
    if (why !== null) {
      if (policy === "none") return { network: null, nameServers: null };
      write(sandbox, { egress: "open" });
      return { network: await networks.createOpen(why), nameServers: null };
    }
    write(sandbox, { isFiltered: true });
    // Names that containers of Podman ask come to this machine whichever name server they have.
    const nameServers = isPodman ? null : [NAME_SERVER];
    const network = policy === "none" ? null : networks.ownNameOf((await this.#take(sandbox)).name);
    return { network, nameServers };
  }

  /** When the container runs, and no program in it yet. Until then it reaches nothing. */
  async begin(sandbox: DockerSandbox, policy: EgressPolicy): Promise<void> {
    const { network: name } = sandbox.record;
    if (name !== undefined) await this.#apply(sandbox, await this.#get(name), policy);
  }

  async change(sandbox: DockerSandbox, policy: EgressPolicy, { isPodman }: Daemon): Promise<void> {
    if (sandbox.record.isFiltered !== true) return this.#changeOpen(sandbox, policy, isPodman);
    const { network: name, runtime } = sandbox.record;
    if (policy === "none") {
      if (name !== undefined) await (await this.#get(name)).setEgress(policy);
      return;
    }
    const { networks } = this.#options;
    const joined = await networks.listOf(sandbox.name);
    const isJoined = name !== undefined && joined.includes(networks.ownNameOf(name));
    if (!isJoined && (isPodman || runtime === "runsc")) throw unsupported(sandbox, noNetworkLater({ runtime }));
    const network = name === undefined ? await this.#take(sandbox) : await this.#get(name);
    if (!isJoined) {
      if (joined.includes("none")) await networks.disconnect("none", sandbox.name);
      await networks.connect(networks.ownNameOf(network.name), sandbox.name);
    }
    await this.#apply(sandbox, network, policy);
  }

  /** Goes on with what an earlier server did for a container that runs. */
  async adopt({ record }: DockerSandbox): Promise<void> {
    if (record.network !== undefined) await (await this.#open()).find(record.network);
  }

  /** When the container has been removed. */
  async removeOwn({ network }: DockerRecord): Promise<void> {
    if (network !== undefined) await (await this.#open()).remove(network);
  }

  /** The open network, unless a sandbox, also of another server of this home, has open egress. Its record is written before. */
  async removeUnusedOpen(): Promise<void> {
    const { networks, records } = this.#options;
    await networks.removeOpen(() => records().some(({ egress }) => egress === "open"));
  }

  /** Removes what killed servers left. Also later than the first time: the daemon may have been carrying out a request of one. */
  async removeLeft(): Promise<void> {
    const { networks, records } = this.#options;
    const hasLeft = this.#opened !== undefined || (existsSync(this.#folder) && filterProblem(this.#options.socket) === null);
    if (hasLeft) {
      const own = await this.#open();
      const abandoned = await own.listAbandoned();
      const used = records().map(({ network }) => network);
      const unused = abandoned.filter((name) => !used.includes(name));
      // What cannot be removed now is tried again at the next call.
      await Promise.allSettled([own.removeLost(), ...unused.map((name) => own.remove(name))]);
    }
    if (this.#hasRemovedLeft && !(await networks.list()).includes(networks.open)) return;
    this.#hasRemovedLeft = true;
    await this.removeUnusedOpen();
  }

  async close(): Promise<void> {
    await (await this.#opened?.catch(() => undefined))?.close();
  }

  async #take(sandbox: DockerSandbox): Promise<SandboxNetwork> {
    const network = await (await this.#open()).take(AbortSignal.timeout(TAKE_MS));
    try {
      this.#options.write(sandbox, { network: network.name });
    } catch (error) {
      // It has been destroyed meanwhile, or the disk is full.
      await network.release();
      throw error;
    }
    return network;
  }

  async #get(name: string): Promise<SandboxNetwork> {
    const network = await (await this.#open()).find(name);
    if (network === null) throw new PlatformError("internal", `the network ${name} has no record`);
    return network;
  }

  async #apply(sandbox: DockerSandbox, network: SandboxNetwork, policy: EgressPolicy): Promise<void> {
    try {
      await network.serve();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRNOTAVAIL") throw error;
      throw unsupported(
        sandbox,
        `the daemon has no interface ${network.name} in the server's network namespace, so nothing would be restricted`,
      );
    }
    await network.setEgress(policy);
  }

  /** Connects a container whose packets are not filtered to the open network, or disconnects it. */
  async #changeOpen(sandbox: DockerSandbox, policy: EgressPolicy, isPodman: boolean): Promise<void> {
    const { networks, write } = this.#options;
    const { egress, runtime, networks: shared = [] } = sandbox.record;
    const why = filterProblem(this.#options.socket) ?? "this container was created by a server that could not";
    const problem = egressProblem([egress, policy], { runtime, isPodman: false, filterProblem: why });
    if (problem !== null) throw unsupported(sandbox, problem);
    if (egress === policy) return;
    // A container in a private network is not in the network `none`, which Podman does not have.
    const usesNone = shared.length === 0 && !isPodman;
    if (policy === "none") {
      await networks.disconnect(networks.open, sandbox.name);
      if (usesNone) await networks.connect("none", sandbox.name);
      write(sandbox, { egress: "none" });
      return this.removeUnusedOpen();
    }
    write(sandbox, { egress: "open" });
    await networks.createOpen(why);
    if (usesNone) await networks.disconnect("none", sandbox.name);
    // Whether Podman can depends on how the container was created, so it is asked.
    await networks.connect(networks.open, sandbox.name).catch(async (error: unknown) => {
      if (!(error instanceof Error) || !error.message.includes("invalid network mode")) throw error;
      write(sandbox, { egress: "none" });
      await this.removeUnusedOpen();
      throw unsupported(sandbox, noNetworkLater({ runtime }));
    });
  }

  #open(): Promise<Networks> {
    const { homeId, networks, sandboxes, onRefused, subnet, resolve } = this.#options;
    this.#opened ??= Networks.open({
      home: homeId,
      folder: this.#folder,
      cables: new BridgeCables(networks),
      poolSize: 0,
      onRefused: ({ network, host, port }) => {
        const sandbox = [...sandboxes()].find(({ record }) => record.network === network);
        if (sandbox !== undefined) onRefused?.({ sandboxId: sandbox.id, host, port });
      },
      ...(subnet !== undefined && { subnet }),
      ...(resolve !== undefined && { resolve }),
    }).catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }
}

const TAKE_MS = 60_000;

function unsupported({ id }: DockerSandbox, why: string): PlatformError {
  return new PlatformError("sandbox.unsupported", `the policy of sandbox '${id}' cannot be applied: ${why}`);
}
