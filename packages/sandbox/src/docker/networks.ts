import { type DockerApi, isDockerError } from "./api.ts";
import { HOME_LABEL } from "./container.ts";

/** The networks of one home on the daemon: those of single containers, private ones, and one that containers share if nothing can be filtered. */
export class DockerNetworks {
  readonly #api: DockerApi;
  readonly #homeId: string;
  readonly #log: (line: string) => void;
  #hasWarned = false;
  #last: Promise<unknown> = Promise.resolve();
  /** Network of the containers with open egress whose packets this machine does not filter. */
  readonly open: string;

  constructor(api: DockerApi, homeId: string, log: (line: string) => void = () => undefined) {
    this.#api = api;
    this.#homeId = homeId;
    this.#log = log;
    this.open = `aenv-${homeId}`;
  }

  /** The name of a private network. */
  nameOf(id: string): string {
    return `aenv-${this.#homeId}-net-${id}`;
  }

  /** The name of the network of a single container, whose interface on the machine has this name. */
  ownNameOf(bridge: string): string {
    return `${this.#ownPrefix}${bridge}`;
  }

  get #ownPrefix(): string {
    return `aenv-${this.#homeId}-own-`;
  }

  /** Creates a network for one container, which gets the address that is left. */
  async createOwn(bridge: string, subnet: string, gateway: string): Promise<string> {
    const options = { "com.docker.network.bridge.name": bridge };
    return this.#create(this.ownNameOf(bridge), { Options: options, IPAM: { Config: [{ Subnet: subnet, Gateway: gateway }] } });
  }

  /** The names of the interfaces of all networks of single containers. */
  async listOwn(): Promise<readonly string[]> {
    return (await this.list()).flatMap((name) => (name.startsWith(this.#ownPrefix) ? [name.slice(this.#ownPrefix.length)] : []));
  }

  /** Why: the reason that its packets are not filtered. */
  createOpen(why: string): Promise<string> {
    return this.#inOrder(async () => {
      const name = await this.#create(this.open, { Options: { "com.docker.network.bridge.enable_icc": "false" } });
      if (!this.#hasWarned)
        this.#log(
          `sandboxes with open egress can reach private networks, metadata services and this machine, and each other unless the daemon prevents it, because their packets cannot be filtered: ${why}. Set egressLimit to 'none' if that matters`,
        );
      this.#hasWarned = true;
      return name;
    });
  }

  /** The open network, if no sandbox uses it. */
  removeOpen(isUsed: () => boolean): Promise<void> {
    return this.#inOrder(async () => {
      if (!isUsed()) await this.remove(this.open);
    });
  }

  /** Changes of the open network, one after the other: what one sandbox needs, the end of another must not remove. */
  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** Not even this machine has an address in it. */
  async createPrivate(id: string): Promise<string> {
    return this.#create(this.nameOf(id), { Internal: true, Options: { "com.docker.network.bridge.inhibit_ipv4": "true" } });
  }

  /** False if the daemon refuses it: a container is connected. */
  async remove(name: string): Promise<boolean> {
    try {
      await this.#api.call("DELETE", `/networks/${name}`);
      return true;
    } catch (error) {
      if (!isDockerError(error)) throw error;
      return isDockerError(error, 404);
    }
  }

  connect(name: string, container: string, aliases: readonly string[] = []): Promise<void> {
    return this.#api.tell("POST", `/networks/${name}/connect`, { body: { Container: container, EndpointConfig: { Aliases: aliases } } });
  }

  disconnect(name: string, container: string): Promise<void> {
    return this.#api.tell("POST", `/networks/${name}/disconnect`, { body: { Container: container, Force: true } });
  }

  /** The names of the networks that a container is in. */
  async listOf(container: string): Promise<readonly string[]> {
    const { NetworkSettings: settings } = await this.#api.call("GET", `/containers/${container}/json`);
    return Object.keys((settings as { readonly Networks?: object } | undefined)?.Networks ?? {});
  }

  /** The names of the private networks. */
  async listPrivate(): Promise<readonly string[]> {
    return (await this.list()).filter((name) => name.startsWith(this.nameOf("")));
  }

  /** The names of all networks of the home. */
  async list(): Promise<readonly string[]> {
    const all = await this.#api.list("/networks", { filters: JSON.stringify({ label: [`${HOME_LABEL}=${this.#homeId}`] }) });
    return all.map(({ Name: name }) => String(name));
  }

  async #create(name: string, settings: object): Promise<string> {
    try {
      await this.#api.call("POST", "/networks/create", {
        body: { Name: name, CheckDuplicate: true, Driver: "bridge", Labels: { [HOME_LABEL]: this.#homeId }, ...settings },
      });
    } catch (error) {
      // Podman 4.3 answers 500.
      if (!isDockerError(error, 409) && !(isDockerError(error, 500) && error.message.includes("already exists"))) throw error;
    }
    return name;
  }
}
