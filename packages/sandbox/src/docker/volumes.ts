import type { Resources } from "@aenv/contract";
import { type DockerApi, isDockerError } from "./api.ts";
import { HOME_LABEL } from "./container.ts";

/** The volumes of one home on the daemon: folders that several containers share. */
export class DockerVolumes {
  readonly #api: DockerApi;
  readonly #homeId: string;

  constructor(api: DockerApi, homeId: string) {
    this.#api = api;
    this.#homeId = homeId;
  }

  nameOf(id: string): string {
    return `aenv-${this.#homeId}-vol-${id}`;
  }

  /**
   * Creating one that exists changes nothing. On the daemon's disk a volume has no limit, so one of sandboxes with a limit is in memory, which
   * counts as that of the sandbox that writes.
   */
  async create(id: string, { diskMb }: Resources = {}): Promise<void> {
    const inMemory = diskMb !== undefined && { DriverOpts: { type: "tmpfs", device: "tmpfs", o: `size=${diskMb}m` } };
    const body = { Name: this.nameOf(id), Driver: "local", Labels: { [HOME_LABEL]: this.#homeId }, ...inMemory };
    await this.#api.call("POST", "/volumes/create", { body });
  }

  /** The daemon refuses it while a container has it. */
  async remove(name: string): Promise<void> {
    await this.#api.call("DELETE", `/volumes/${name}`).catch((error: unknown) => {
      if (!isDockerError(error)) throw error;
    });
  }

  /** The names of all. */
  async list(): Promise<readonly string[]> {
    const filters = JSON.stringify({ label: [`${HOME_LABEL}=${this.#homeId}`] });
    const { Volumes: found } = await this.#api.call("GET", "/volumes", { query: { filters } });
    return ((found ?? []) as readonly { readonly Name: string }[]).map(({ Name: name }) => name);
  }
}
