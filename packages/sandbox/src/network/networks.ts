import { randomInt } from "node:crypto";
import { Resolver } from "node:dns/promises";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";
import { waitForLaunchers } from "../host/launcher.ts";
import { identityOf, isRunning, openProcessTable, type ProcessIdentity } from "../host/process-table.ts";
import type { Cables } from "./cables.ts";
import { command, nft } from "./commands.ts";
import { HeldNetwork, type SandboxNetwork } from "./held-network.ts";
import { claimHome, forgetHome, type Home, type StoredHome } from "./home.ts";
import type { NameAddress } from "./names.ts";
import { type NetworkRecord, RecordFiles } from "./records.ts";
import { parseRefused, type Refusal, Refusals } from "./refusals.ts";
import { restoreForwarding } from "./routes.ts";
import { addressRules, homeRules, removalRules } from "./rules.ts";
import { candidates, capacityOf, endsOf, indexOf, nameOf, prefixOf } from "./subnet.ts";

export interface NetworksOptions {
  /** Distinguishes homes on this machine: each has its own subnet and firewall table. */
  readonly home: string;
  /** Folder of the records. */
  readonly folder: string;
  readonly cables: Cables;
  /** Addresses of the sandboxes. The default is a free one in 10.64.0.0/10. */
  readonly subnet?: string;
  /** How many networks wait for sandboxes. */
  readonly poolSize?: number;
  /** Called for refused connections: each destination of a sandbox once a minute. */
  readonly onRefused?: (refusal: Refusal) => void;
  /** The IPv4 addresses of a name; the default asks the name servers of this machine. */
  readonly resolve?: (name: string) => Promise<readonly NameAddress[]>;
}

const DEFAULT_POOL_SIZE = 4;
const POLL_MS = 5_000;

/** The networks of the sandboxes of a home: each has one cable to this machine, and rules for it. */
export class Networks {
  readonly #home: Home;
  readonly #records: RecordFiles<NetworkRecord>;
  readonly #processes: RecordFiles<ProcessIdentity>;
  readonly #self: ProcessIdentity;
  readonly #options: NetworksOptions;
  readonly #resolve: (name: string) => Promise<readonly NameAddress[]>;
  readonly #refusals: Refusals | null;
  readonly #held = new Map<string, HeldNetwork>();
  readonly #ready: HeldNetwork[] = [];
  readonly #closing = new AbortController();
  #lastIndex: number;
  #refilling: Promise<void> | null = null;
  #isClosed = false;
  #poll: NodeJS.Timeout | null = null;

  static async open(options: NetworksOptions): Promise<Networks> {
    const { folder } = options;
    const records = new RecordFiles<NetworkRecord>(folder);
    const processes = new RecordFiles<ProcessIdentity>(join(folder, "processes"));
    await records.open();
    await processes.open();
    const self = identityOf(processTable, process.pid);
    if (self === null) throw new PlatformError("internal", "this process is not in the table of processes");
    await processes.replace(String(self.pid), self);
    await waitForLaunchers(await endedIn(processes));
    const isInUse = async () => (await records.names(prefixOf(options.home))).length > 0;
    const home = await claimHome(options.home, options.subnet, new RecordFiles<StoredHome>(folder), isInUse);
    await nft(homeRules(home));
    const networks = new Networks(home, records, processes, self, options);
    await networks.#sweep();
    return networks;
  }

  private constructor(
    home: Home,
    records: RecordFiles<NetworkRecord>,
    processes: RecordFiles<ProcessIdentity>,
    self: ProcessIdentity,
    options: NetworksOptions,
  ) {
    this.#home = home;
    this.#records = records;
    this.#processes = processes;
    this.#self = self;
    this.#options = options;
    this.#resolve = options.resolve ?? resolveName;
    this.#refusals = options.onRefused === undefined ? null : new Refusals(options.onRefused);
    // Processes of a home begin at different places, and seldom try the same number.
    this.#lastIndex = randomInt(capacityOf(home.subnet));
    if (this.#refusals !== null) this.#poll = setInterval(() => void this.pollRefused().catch(() => {}), POLL_MS).unref();
  }

  /** A network without outgoing connections, from the pool if it has one. The caller refills the pool when nothing else is to be done. */
  async take(signal: AbortSignal): Promise<SandboxNetwork> {
    signal.throwIfAborted();
    this.#closing.signal.throwIfAborted();
    const network = this.#ready.pop() ?? (await this.#create(1))[0];
    if (network === undefined) throw new PlatformError("internal", "no network was created");
    await network.setState("taken");
    return network;
  }

  /** Adopts the network of a sandbox that an earlier process of this home started; null if there is none. */
  async find(name: string): Promise<SandboxNetwork | null> {
    const held = this.#held.get(name);
    if (held !== undefined) return held;
    const record = await this.#records.find(name);
    if (record === null || record.state !== "taken") return null;
    const adopted = this.#hold(name, { ...record, owner: this.#self });
    await this.#records.replace(name, adopted.record);
    adopted.takeOver();
    return adopted;
  }

  /** The networks of sandboxes, without those of other processes of this home that run. */
  list(): Promise<readonly string[]> {
    return this.#taken((record) => !this.#isForeign(record));
  }

  /** The networks of sandboxes whose process has ended and that no other process has adopted. */
  listAbandoned(): Promise<readonly string[]> {
    return this.#taken(({ owner }) => !isRunning(processTable, owner));
  }

  async #taken(isWanted: (record: NetworkRecord) => boolean): Promise<readonly string[]> {
    const names: string[] = [];
    for (const name of await this.#records.names(this.#home.prefix)) {
      const record = await this.#records.find(name);
      if (record?.state === "taken" && isWanted(record)) names.push(name);
    }
    return names;
  }

  /** Removes a network by name, also one that this process did not create. Idempotent. */
  async remove(name: string): Promise<void> {
    const index = indexOf(this.#home.prefix, name);
    if (index === null) throw new PlatformError("request.invalid", `'${name}' is not the name of a network of this home`);
    this.#held.get(name)?.close();
    this.#held.delete(name);
    await this.#options.cables.remove(name);
    if (index <= capacityOf(this.#home.subnet)) await nft(removalRules(this.#home.prefix, name, endsOf(this.#home.subnet, index).sandbox));
    await this.#records.remove(name);
    // A sandbox may end after `close`, and the rules that remain are of no use then.
    if (this.#isClosed) await this.#removeUnused();
  }

  /** Sandboxes keep their networks; what waits in the pool is removed. The last process without sandboxes removes the rules too. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    if (this.#poll !== null) clearInterval(this.#poll);
    await this.#refilling;
    for (const network of this.#ready.splice(0)) await this.remove(network.name);
    for (const network of this.#held.values()) network.close();
    this.#held.clear();
    await this.#processes.remove(String(this.#self.pid));
    this.#isClosed = true;
    await this.#removeUnused();
  }

  async #removeUnused(): Promise<void> {
    if ((await this.list()).length > 0 || (await this.#hasOtherProcess())) return;
    await restoreForwarding(this.#home.prefix);
    await nft(`add table inet ${this.#home.prefix}\ndelete table inet ${this.#home.prefix}\n`);
    await forgetHome(this.#home);
  }

  /** Reports packets that were refused since the last time. */
  async pollRefused(): Promise<void> {
    if (this.#refusals === null || this.#held.size === 0) return;
    for (const refusal of parseRefused(await command("nft", ["-j", "list", "set", "inet", this.#home.prefix, "refused"])))
      if (this.#held.has(refusal.network)) this.#refusals.add(refusal);
  }

  /** Creates the networks that the pool lacks. Never rejects: the next sandbox creates its own network, and gets the error if there still is one. */
  async refill(): Promise<void> {
    const size = this.#options.poolSize ?? DEFAULT_POOL_SIZE;
    this.#refilling ??= (async () => {
      while (!this.#closing.signal.aborted && this.#ready.length < size)
        this.#ready.push(...(await this.#create(size - this.#ready.length)));
    })()
      .catch(() => undefined)
      .finally(() => {
        this.#refilling = null;
      });
    await this.#refilling;
  }

  async #create(count: number): Promise<HeldNetwork[]> {
    const created: HeldNetwork[] = [];
    try {
      while (created.length < count) created.push(await this.#allocate());
      const { cables } = this.#options;
      await cables.create(created);
      // The rules of the home again: another process, the last one of its time, may have removed them.
      await nft(homeRules(this.#home) + addressRules(this.#home.prefix, created));
      if (cables.haveAddresses) for (const network of created) await network.serve();
      return created;
    } catch (error) {
      for (const network of created) await this.remove(network.name).catch(() => {});
      throw error;
    }
  }

  async #allocate(): Promise<HeldNetwork> {
    const capacity = capacityOf(this.#home.subnet);
    for (const index of candidates(capacity, this.#lastIndex)) {
      const name = nameOf(this.#home.prefix, index);
      const record: NetworkRecord = { index, owner: this.#self, state: "pooled", egress: "none" };
      if (this.#held.has(name) || !(await this.#records.add(name, record))) continue;
      this.#lastIndex = index;
      return this.#hold(name, record);
    }
    throw new PlatformError(
      "sandbox.start_failed",
      `all ${capacity} addresses for sandboxes are in use; destroy instances, or name a larger network with the setting sandboxSubnet`,
    );
  }

  #hold(name: string, record: NetworkRecord): HeldNetwork {
    const network = new HeldNetwork(name, record, {
      home: this.#home,
      records: this.#records,
      resolve: this.#resolve,
      onRefused: (refusal) => this.#refusals?.add(refusal),
      remove: () => this.remove(name),
    });
    this.#held.set(name, network);
    return network;
  }

  /** Removes what crashed processes of this home left: their pools, and cables without a record. */
  async #sweep(): Promise<void> {
    for (const name of await this.#records.names(this.#home.prefix)) {
      const record = await this.#records.find(name);
      if (record?.state === "pooled" && !this.#isForeign(record)) await this.remove(name);
    }
    await this.removeLost();
  }

  /** Removes cables of this home without a record. A record is written before its cable exists. */
  async removeLost(): Promise<void> {
    const names = [...(await this.#options.cables.list())].filter((name) => indexOf(this.#home.prefix, name) !== null);
    const known = await this.#records.names(this.#home.prefix);
    for (const name of names) if (!known.includes(name) && !this.#held.has(name)) await this.remove(name);
  }

  #isForeign({ owner }: NetworkRecord): boolean {
    return !isSame(owner, this.#self) && isRunning(processTable, owner);
  }

  async #hasOtherProcess(): Promise<boolean> {
    for (const name of await this.#processes.names("")) {
      const identity = await this.#processes.find(name);
      if (identity === null || isSame(identity, this.#self)) continue;
      if (isRunning(processTable, identity)) return true;
      await this.#processes.remove(name);
    }
    return false;
  }
}

const processTable = openProcessTable();

async function endedIn(processes: RecordFiles<ProcessIdentity>): Promise<ProcessIdentity[]> {
  const known = await Promise.all((await processes.names("")).map((name) => processes.find(name)));
  return known.filter((one) => one !== null).filter((one) => !isRunning(processTable, one));
}

function isSame(one: ProcessIdentity, other: ProcessIdentity): boolean {
  return one.pid === other.pid && one.start === other.start;
}

/** Names with no IPv4 address have an empty list. Entries of /etc/hosts and search domains are not used. */
async function resolveName(name: string): Promise<readonly NameAddress[]> {
  try {
    return await new Resolver({ timeout: 2_000, tries: 2 }).resolve4(name, { ttl: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENODATA" || code === "ENOTFOUND") return [];
    throw error;
  }
}
