import { createHash } from "node:crypto";
import { formatIpv4, type Ipv4Network, overlapsIpv4, PlatformError, parseIpv4Network } from "@aenv/contract";

/** The two ends of a sandbox's virtual cable. */
export interface Ends {
  readonly host: string;
  readonly sandbox: string;
}

/** Both ends, with the address of the network and of the broadcast. */
export const BLOCK_SIZE = 4;
export const BLOCK_PREFIX = 30;

const HOME_PREFIX = 16;
/** 10.64.0.0 to 10.127.0.0: seldom used by routers, clouds and Docker. */
const FIRST_HOME = 0x0a400000;
const HOMES = 64;

/** Begins the names of everything in the kernel that belongs to a home. Interfaces have names of at most 15 characters. */
export function prefixOf(home: string): string {
  return `ae${createHash("sha256").update(home).digest("hex").slice(0, 8)}_`;
}

export function nameOf(prefix: string, index: number): string {
  return `${prefix}${index.toString(36)}`;
}

/** Null for a name that is not of this home. */
export function indexOf(prefix: string, name: string): number | null {
  if (!name.startsWith(prefix)) return null;
  const index = Number.parseInt(name.slice(prefix.length), 36);
  return nameOf(prefix, index) === name ? index : null;
}

/** How many sandboxes a subnet has room for. The first block stays unused. */
export function capacityOf({ prefix }: Ipv4Network): number {
  return Math.max(0, 2 ** (32 - prefix) / BLOCK_SIZE - 1);
}

export function endsOf(subnet: Ipv4Network, index: number): Ends {
  if (!Number.isInteger(index) || index < 1 || index > capacityOf(subnet)) throw new RangeError(`the subnet has no block ${index}`);
  const block = subnet.address + index * BLOCK_SIZE;
  return { host: formatIpv4(block + 1), sandbox: formatIpv4(block + 2) };
}

/**
 * Numbers from 1 to the capacity in the order in which they are tried. It goes around, so that a number is used again as late as
 * possible: connections of its last user are then forgotten.
 */
export function* candidates(capacity: number, last: number): Generator<number> {
  for (let step = 1; step <= capacity; step++) yield ((last + step - 1) % capacity) + 1;
}

/** Subnets that a home can take, those that no route of the machine uses; the home decides which is first. */
export function freeSubnets(home: string, routes: readonly Ipv4Network[]): Ipv4Network[] {
  const first = createHash("sha256").update(home).digest().readUInt32BE(8);
  const free: Ipv4Network[] = [];
  for (let step = 0; step < HOMES; step++) {
    const address = FIRST_HOME + ((first + step) % HOMES) * 2 ** (32 - HOME_PREFIX);
    const subnet = { address, prefix: HOME_PREFIX };
    if (!routes.some((route) => overlapsIpv4(route, subnet))) free.push(subnet);
  }
  return free;
}

/** The subnet that the operator names. Larger ones would have numbers that do not fit into the name of an interface. */
export function parseSubnet(text: string): Ipv4Network {
  const subnet = parseIpv4Network(text);
  if (subnet !== null && subnet.prefix >= 10 && capacityOf(subnet) >= 1) return subnet;
  throw new PlatformError(
    "request.invalid",
    `the setting sandboxSubnet is '${text}'; it must be an IPv4 network from /10 to /29, such as 172.30.0.0/16`,
  );
}
