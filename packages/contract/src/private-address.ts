import { containsIpv4, type Ipv4Network, parseIpv4, parseIpv4Network } from "./ipv4.ts";

/** IPv4 addresses that are no hosts of the internet, and one of a cloud's metadata service that looks as if it were. */
const NOT_PUBLIC_IPV4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
].map((text) => parseIpv4Network(text) as Ipv4Network);

/** 2000::/3 has all hosts of the internet. */
const PUBLIC_IPV6 = ipv6Network("2000::", 3);
/** Protocol assignments with Teredo, benchmarks and ORCHID; documentation; 6to4; documentation. */
const NOT_PUBLIC_IPV6 = [ipv6Network("2001::", 23), ipv6Network("2001:db8::", 32), ipv6Network("2002::", 16), ipv6Network("3fff::", 20)];
/**
 * Addresses whose last 32 bits are the IPv4 address that a connection reaches: IPv4-mapped ones, and NAT64. In `::a.b.c.d`,
 * `::ffff:0:a.b.c.d`, 6to4 and Teredo, what an address leads to depends on the network, so none of them is public.
 */
const IPV4_INSIDE = [ipv6Network("::ffff:0:0", 96), ipv6Network("64:ff9b::", 96)];

/**
 * Whether an IPv4 or IPv6 address is one of the internet: not the machine itself, a private network, link-local, multicast or reserved.
 * False for a text that is no address, and for one with a zone (`fe80::1%eth0`).
 */
export function isPublicAddress(address: string): boolean {
  const ipv4 = parseIpv4(address);
  if (ipv4 !== null) return isPublicIpv4(ipv4);
  const ipv6 = parseIpv6(address);
  if (ipv6 === null) return false;
  if (IPV4_INSIDE.some((network) => network.has(ipv6))) return isPublicIpv4(Number(ipv6 & 0xffff_ffffn));
  return PUBLIC_IPV6.has(ipv6) && !NOT_PUBLIC_IPV6.some((network) => network.has(ipv6));
}

function isPublicIpv4(address: number): boolean {
  return !NOT_PUBLIC_IPV4.some((network) => containsIpv4(network, { address, prefix: 32 }));
}

/** The address as a number; null if the text is no IPv6 address. */
function parseIpv6(text: string): bigint | null {
  if (!/^[0-9a-f:.]+$/i.test(text) || !URL.canParse(`http://[${text}]`)) return null;
  // The URL's host has only groups of hexadecimal digits, and at most one `::`.
  const [before = "", after] = new URL(`http://[${text}]`).hostname.slice(1, -1).split("::");
  const first = groupsOf(before);
  const last = groupsOf(after ?? "");
  const zeros = Array<string>(8 - first.length - last.length).fill("0");
  return [...first, ...zeros, ...last].reduce((address, group) => (address << 16n) | BigInt(`0x${group}`), 0n);
}

function groupsOf(text: string): string[] {
  return text === "" ? [] : text.split(":");
}

function ipv6Network(address: string, prefix: number): { has(address: bigint): boolean } {
  const shift = BigInt(128 - prefix);
  const wanted = (parseIpv6(address) as bigint) >> shift;
  return { has: (one) => one >> shift === wanted };
}
