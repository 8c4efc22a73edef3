import { messageOf, parseIpv4Network } from "@aenv/contract";
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
  #last: Promise<unknown> = Promise.resolve();
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

  /** Before a container is connected. `separate` is called when it is, before one of its programs runs, if that is possible. */
  createOpen(): Promise<string> {
    return this.#inOrder(async () => {
      const problem = await this.#rules.add();
      const { bridge } = this.#rules;
      const options = { "com.docker.network.bridge.enable_icc": "false", "com.docker.network.bridge.name": bridge };
      const name = await this.#create(this.open, { Options: options });
      if (problem !== null) this.#warn(problem);
      else if (!this.#rules.isInForce()) this.#warn(`the daemon has no interface ${bridge} on this machine`);
      else this.#warn(await this.#rules.separate(await this.#openSubnets()));
      return name;
    });
  }

  /** The container that was connected last does not reach the others of the open network. */
  async separate(): Promise<void> {
    if (process.getuid?.() === 0 && this.#rules.isInForce()) this.#warn(await this.#rules.isolatePorts().catch(messageOf));
  }

  /** The open network with its rules, if no sandbox uses it. False if the daemon does not remove it now. */
  removeOpen(isUsed: () => boolean): Promise<boolean> {
    return this.#inOrder(async () => {
      if (isUsed()) return true;
      if (!(await this.remove(this.open))) return false;
      // Another server of this home may have begun to use it.
      if (!isUsed()) await this.#rules.remove();
      return true;
    });
  }

  #warn(why: string | null): void {
    if (why === null || this.#hasWarned) return;
    this.#hasWarned = true;
    this.#log(
      `sandboxes with open egress can reach private networks, metadata services and this machine, and each other unless the daemon prevents it, because their packets cannot be filtered: ${why}. Set egressLimit to 'none' if that matters`,
    );
  }

  async #openSubnets(): Promise<readonly string[]> {
    const { IPAM: ipam } = await this.#api.call("GET", `/networks/${this.open}`);
    const configs = (ipam as { readonly Config?: readonly { readonly Subnet?: string }[] | null } | undefined)?.Config ?? [];
    return configs.flatMap(({ Subnet: subnet = "" }) => (parseIpv4Network(subnet) === null ? [] : [subnet]));
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
