import { randomInt } from "node:crypto";
import { networkInterfaces } from "node:os";
import { type EgressPolicy, egressPolicy, type Ipv4Network, PlatformError, parseIpv4 } from "@aenv/contract";
import { nft } from "./commands.ts";
import type { Home } from "./home.ts";
import { NameServer } from "./name-server.ts";
import { decideName, isAllowedName, type NameAddress, type NameDecision } from "./names.ts";
import type { NetworkRecord, RecordFiles } from "./records.ts";
import type { Refusal } from "./refusals.ts";
import { enableForwarding } from "./routes.ts";
import { policyRules, resolvedRules } from "./rules.ts";
import { type Ends, endsOf } from "./subnet.ts";

/** The network of one sandbox. */
export interface SandboxNetwork {
  /** Also of its interface on this machine. */
  readonly name: string;
  /** Address of the sandbox. The server connects to it. */
  readonly address: string;
  /** Address of this machine, at the other end of the cable. */
  readonly hostAddress: string;
  /** Content of `/etc/resolv.conf` in the sandbox. It stays valid when the policy changes. */
  readonly resolvConf: string;
  /** Connections that the new policy does not allow are cut. */
  setEgress(policy: EgressPolicy): Promise<void>;
  /** Answers names, which needs the address of this machine's end. Idempotent. */
  serve(): Promise<void>;
  release(): Promise<void>;
}

/** An address stays open this much longer than the answer with it is valid: programs connect some time after they asked. */
const GRACE_SECONDS = 60;
const MAX_KNOWN_NAMES = 1_000;

interface Surroundings {
  readonly home: Home;
  readonly records: RecordFiles<NetworkRecord>;
  readonly resolve: (name: string) => Promise<readonly NameAddress[]>;
  readonly onRefused: (refusal: Refusal) => void;
  readonly remove: () => Promise<void>;
}

/** A network that this process uses: its egress policy, and the server that answers names in it. */
export class HeldNetwork implements SandboxNetwork {
  readonly name: string;
  readonly ends: Ends;
  record: NetworkRecord;
  readonly #around: Surroundings;
  readonly #closing = new AbortController();
  /** Decisions that are still valid. */
  readonly #known = new Map<string, { readonly decision: NameDecision; readonly until: number }>();
  #server: NameServer | null = null;
  /** Changes of the rules, one after the other: a name that was resolved for an old policy opens nothing under the new one. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(name: string, record: NetworkRecord, around: Surroundings) {
    this.name = name;
    this.record = record;
    this.ends = endsOf(around.home.subnet, record.index);
    this.#around = around;
  }

  get address(): string {
    return this.ends.sandbox;
  }

  get hostAddress(): string {
    return this.ends.host;
  }

  get resolvConf(): string {
    return [
      "# The platform restricts the outgoing connections of this sandbox by its egress policy. Names that the policy does not allow",
      "# do not exist here, and connections to other addresses are refused. The environment sets deployConfig.egress in config.json.",
      `nameserver ${this.hostAddress}`,
      "",
    ].join("\n");
  }

  setEgress(policy: EgressPolicy): Promise<void> {
    const checked = egressPolicy.parse(policy);
    return this.#change(async () => {
      const { home } = this.#around;
      if (checked !== "none") await enableForwarding(home.prefix, (device) => device.startsWith(home.prefix), this.name);
      await this.#store({ ...this.record, egress: checked });
      this.#known.clear();
      await nft(policyRules(home, this.name, checked, randomInt(1, 2 ** 31)));
    });
  }

  async setState(state: NetworkRecord["state"]): Promise<void> {
    await this.#store({ ...this.record, state });
  }

  async release(): Promise<void> {
    await this.#around.remove();
  }

  async serve(): Promise<void> {
    this.#server ??= await NameServer.open(this.hostAddress, this.#around.home.namePort, this.#decide);
  }

  /** Answers names as soon as no other process does. */
  takeOver(): void {
    // It fails if the network is removed before, or this process closes.
    void this.#takeOver().catch(() => undefined);
  }

  async #takeOver(): Promise<void> {
    const server = await NameServer.takeOver(this.hostAddress, this.#around.home.namePort, this.#decide, this.#closing.signal);
    this.#server = server;
    if (this.#closing.signal.aborted) return server.close();
    await this.#change(async () => {
      // The process that answered until now may have changed the policy since this one adopted the network.
      const stored = await this.#around.records.find(this.name);
      if (stored !== null) this.record = { ...this.record, egress: stored.egress };
      this.#known.clear();
    });
  }

  close(): void {
    this.#closing.abort();
    this.#server?.close();
  }

  readonly #decide = async (name: string): Promise<NameDecision> => {
    const known = this.#known.get(name);
    if (known !== undefined && known.until > Date.now()) return known.decision;
    if (!isAllowedName(this.record.egress, name)) {
      this.#around.onRefused({ network: this.name, host: name, port: null });
      return { kind: "refused" };
    }
    const found = await this.#around.resolve(name);
    return await this.#change(async () => {
      const { home } = this.#around;
      const decision = decideName(this.record.egress, name, found, [home.subnet, ...ownAddresses()]);
      if (decision.kind !== "answer") this.#around.onRefused({ network: this.name, host: name, port: null });
      else if (decision.opened.length > 0)
        await nft(resolvedRules(home.prefix, this.name, decision.opened, decision.ttlSeconds + GRACE_SECONDS));
      if (this.#known.size >= MAX_KNOWN_NAMES) this.#known.clear();
      if (decision.kind === "answer") this.#known.set(name, { decision, until: Date.now() + decision.ttlSeconds * 1_000 });
      return decision;
    });
  };

  async #store(record: NetworkRecord): Promise<void> {
    await this.#around.records.replace(this.name, record);
    this.record = record;
  }

  #change<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(() => {
      if (this.#closing.signal.aborted) throw new PlatformError("instance.gone", `the network ${this.name} has been released`);
      return work();
    });
    this.#last = done.catch(() => {});
    return done;
  }
}

function ownAddresses(): Ipv4Network[] {
  return Object.values(networkInterfaces()).flatMap((all) =>
    (all ?? []).flatMap(({ address }) => {
      const parsed = parseIpv4(address);
      return parsed === null ? [] : { address: parsed, prefix: 32 };
    }),
  );
}
