import type { DockerApi } from "./api.ts";
import type { DockerNetworks } from "./networks.ts";
import type { DockerRecord } from "./record.ts";
import { DockerVolumes } from "./volumes.ts";

/** What containers of a home share: private networks and volumes. Each exists as long as one of its containers. */
export class DockerShares {
  readonly volumes: DockerVolumes;
  readonly #networks: DockerNetworks;

  constructor(api: DockerApi, homeId: string, networks: DockerNetworks) {
    this.volumes = new DockerVolumes(api, homeId);
    this.#networks = networks;
  }

  /** Removes what only this container had. Of several that end at once, each tries, and the daemon lets the last one. */
  async removeUnused({ networks = [], volumes = [] }: DockerRecord, others: readonly DockerRecord[]): Promise<void> {
    const isUsed = (kind: "networks" | "volumes", id: string) => others.some((other) => other[kind]?.includes(id) === true);
    for (const id of networks) if (!isUsed("networks", id)) await this.#networks.remove(this.#networks.nameOf(id));
    for (const id of volumes) if (!isUsed("volumes", id)) await this.volumes.remove(this.volumes.nameOf(id));
  }

  /** Removes those that no record names. A record is written before they are created, so `records` reads them again. */
  async removeLost(records: () => readonly DockerRecord[]): Promise<void> {
    const [networks, volumes] = [await this.#networks.listPrivate(), await this.volumes.list()];
    const named = records().flatMap((record) => [
      ...(record.networks ?? []).map((id) => this.#networks.nameOf(id)),
      ...(record.volumes ?? []).map((id) => this.volumes.nameOf(id)),
    ]);
    for (const name of networks) if (!named.includes(name)) await this.#networks.remove(name);
    for (const name of volumes) if (!named.includes(name)) await this.volumes.remove(name);
  }
}
