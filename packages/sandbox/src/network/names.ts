import {
  containsIpv4,
  destinationsOf,
  type EgressPolicy,
  formatIpv4,
  type Ipv4Network,
  isEverywhere,
  matchesName,
  parseIpv4,
  privateNetworks,
} from "@aenv/contract";
import { forbiddenNetworks, isEveryName, type ResolvedAddress } from "./rules.ts";

/** An IPv4 address of a name, and for how many seconds it is valid. */
export interface NameAddress {
  readonly address: string;
  readonly ttl: number;
}

export type NameDecision =
  | { readonly kind: "refused" }
  /** All addresses are the machine's own, of its sandboxes, or of private networks that the policy does not list. */
  | { readonly kind: "unreachable"; readonly address: string }
  | {
      readonly kind: "answer";
      readonly addresses: readonly string[];
      readonly opened: readonly ResolvedAddress[];
      readonly ttlSeconds: number;
    };

const MIN_TTL_SECONDS = 5;
const MAX_TTL_SECONDS = 300;

/** Whether a name may be looked up at all: a query is itself a message to the outside. */
export function isAllowedName(policy: EgressPolicy, name: string): boolean {
  return isEveryName(policy) || destinationsOf(policy).some((destination) => matchesName(destination, name));
}

/**
 * What a sandbox gets for a name, and which addresses and ports it may then connect to. An allowed name whose owner lets it point to a
 * private address opens nothing: only a network in the policy itself does.
 */
export function decideName(policy: EgressPolicy, name: string, found: readonly NameAddress[], never: readonly Ipv4Network[]): NameDecision {
  if (!isAllowedName(policy, name)) return { kind: "refused" };
  const destinations = destinationsOf(policy);
  const networks = destinations.flatMap((one) => (one.kind === "network" ? [one.network] : []));
  const isListed = (address: Ipv4Network) => networks.some((network) => containsIpv4(network, address));
  const isIn = (all: readonly Ipv4Network[], address: Ipv4Network) => all.some((network) => containsIpv4(network, address));

  const addresses = found.flatMap(({ address: text }) => {
    const address = parseIpv4(text);
    if (address === null) return [];
    const one = { address, prefix: 32 };
    if (isIn(never, one) || isIn(forbiddenNetworks, one)) return [];
    return isIn(privateNetworks, one) && !isListed(one) ? [] : [formatIpv4(address)];
  });
  const [first] = found;
  if (addresses.length === 0 && first !== undefined) return { kind: "unreachable", address: first.address };

  const ports = new Set(destinations.filter((one) => matchesName(one, name)).map(({ port }) => port));
  // A name without a port allows all of them. With every address allowed there is nothing to open.
  const opened = policy === "open" || destinations.some(isEverywhere) ? [] : ports.has(null) ? [null] : [...ports];
  const ttl = Math.min(MAX_TTL_SECONDS, ...found.map((one) => one.ttl));
  return {
    kind: "answer",
    addresses,
    // An address of a private network is reachable by the entry that lists the network, on its ports only.
    opened: addresses
      .filter((address) => !isIn(privateNetworks, { address: parseIpv4(address) ?? 0, prefix: 32 }))
      .flatMap((address) => opened.map((port) => ({ address, port }))),
    ttlSeconds: found.length === 0 ? MIN_TTL_SECONDS : Math.max(MIN_TTL_SECONDS, ttl),
  };
}
