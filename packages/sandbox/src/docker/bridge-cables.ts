import { formatIpv4, PlatformError, parseIpv4 } from "@aenv/contract";
import type { Cable, Cables } from "../network/cables.ts";
import { ip } from "../network/commands.ts";
import { listInterfaces } from "../network/namespaces.ts";
import { BLOCK_PREFIX, type Ends } from "../network/subnet.ts";
import type { DockerNetworks } from "./networks.ts";

/**
 * Networks of the daemon with one container each: the bridge is this machine's end of the cable. The daemon's own firewall lets its packets
 * pass, which it would not do for other interfaces. Podman creates the bridge when a container is connected.
 */
export class BridgeCables implements Cables {
  readonly haveAddresses = false;
  readonly #networks: DockerNetworks;

  constructor(networks: DockerNetworks) {
    this.#networks = networks;
  }

  async create(cables: readonly Cable[]): Promise<void> {
    for (const { name, ends } of cables) await this.#networks.createOwn(name, blockOf(ends), ends.host);
  }

  async remove(name: string): Promise<void> {
    if (!(await this.#networks.remove(this.#networks.ownNameOf(name))))
      throw new PlatformError("internal", `the daemon does not remove the network of the interface ${name}; see 'docker network inspect'`);
    // The daemon may have been killed before it removed the interface.
    if ((await listInterfaces()).includes(name)) await ip([`link del dev ${name}`]).catch(() => undefined);
  }

  async list(): Promise<Iterable<string>> {
    return new Set([...(await this.#networks.listOwn()), ...(await listInterfaces())]);
  }
}

/** The addresses of a cable as a network. The host's is the first one after that of the network. */
function blockOf({ host }: Ends): string {
  return `${formatIpv4((parseIpv4(host) ?? 0) - 1)}/${BLOCK_PREFIX}`;
}
