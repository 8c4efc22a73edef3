import { type DockerApi, isDockerError } from "./api.ts";
import { HOME_LABEL } from "./container.ts";
import { OpenRules } from "./open-rules.ts";

/** The networks of one home on the daemon: one of the sandboxes with open egress, and private ones. */
export class DockerNetworks {
  readonly #api: DockerApi;
  readonly #homeId: string;
  readonly #rules: OpenRules;
  readonly #log: (line: string) => void;
  #hasWarned = false;
  /** Of sandboxes with open egress, which cannot reach each other in it. */
  readonly open: string;

  constructor(api: DockerApi, homeId: string, log: (line: string) => void = () => undefined) {
    this.#api = api;
    this.#homeId = homeId;
    this.#rules = new OpenRules(homeId);
    this.#log = log;
    this.open = `aenv-${homeId}`;
  }

  /** The name of a private network. */
  nameOf(id: string): string {
    return `aenv-${this.#homeId}-net-${id}`;
  }

  async createOpen(): Promise<string> {
    const problem = await this.#rules.add();
    const { bridge } = this.#rules;
    const options = { "com.docker.network.bridge.enable_icc": "false", "com.docker.network.bridge.name": bridge };
    const name = await this.#create(this.open, { Options: options });
    const why = problem ?? (this.#rules.isInForce() ? null : `the daemon has no interface ${bridge} on this machine`);
    if (why !== null && !this.#hasWarned) {
      this.#hasWarned = true;
      this.#log(
        `sandboxes with open egress can reach private networks, metadata services and this machine, because their packets cannot be filtered: ${why}. Set egressLimit to 'none' if that matters`,
      );
    }
    return name;
  }

  /** When no sandbox of the home has open egress. Also those that a killed server left. */
  async removeRules(): Promise<void> {
    await this.#rules.remove();
  }

  /** Not even this machine has an address in it. */
  async createPrivate(id: string): Promise<string> {
    return this.#create(this.nameOf(id), { Internal: true, Options: { "com.docker.network.bridge.inhibit_ipv4": "true" } });
  }

  /** The daemon refuses it while a container is connected. */
  async remove(name: string): Promise<void> {
    await this.#api.call("DELETE", `/networks/${name}`).catch((error: unknown) => {
      if (!isDockerError(error)) throw error;
    });
  }

  connect(name: string, container: string, aliases: readonly string[] = []): Promise<void> {
    return this.#api.tell("POST", `/networks/${name}/connect`, { body: { Container: container, EndpointConfig: { Aliases: aliases } } });
  }

  disconnect(name: string, container: string): Promise<void> {
    return this.#api.tell("POST", `/networks/${name}/disconnect`, { body: { Container: container, Force: true } });
  }

  /** The names of all private networks. */
  async listPrivate(): Promise<readonly string[]> {
    const all = await this.#api.list("/networks", { filters: JSON.stringify({ label: [`${HOME_LABEL}=${this.#homeId}`] }) });
    return all.map(({ Name: name }) => String(name)).filter((name) => name.startsWith(this.nameOf("")));
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
