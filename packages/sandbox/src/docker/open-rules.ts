import { existsSync, readFileSync } from "node:fs";
import { formatIpv4Network, parseIpv4, privateNetworks } from "@aenv/contract";
import { nft } from "../oci/network/commands.ts";
import { forbiddenNetworks } from "../oci/network/rules.ts";

/** Where a machine's own name servers are listed; the daemon uses the second list if the first one names only a loopback address. */
const NAME_SERVERS = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];

/**
 * Rules on this machine for sandboxes with open egress: like those of the oci engine, they reach public addresses only. Only root can set
 * them, and they count if the daemon's bridge is in this network namespace.
 */
export class OpenRules {
  /** The bridge of the network, and the table with its rules. */
  readonly bridge: string;

  constructor(homeId: string) {
    // Interfaces have names of at most 15 characters.
    this.bridge = `aeo${homeId.slice(0, 12)}`;
  }

  /** Before the network exists. Why it is not possible, or null. */
  async add(): Promise<string | null> {
    if (process.getuid?.() !== 0) return "the server does not run as root";
    return nft(openRules(this.bridge, nameServers())).then(
      () => null,
      (error: Error) => error.message,
    );
  }

  /** After the network was created: whether the rules see its packets. */
  isInForce(): boolean {
    return readFileSync("/proc/self/net/dev", "utf8").includes(`${this.bridge}:`);
  }

  /** When the network has been removed. Idempotent. */
  async remove(): Promise<void> {
    if (process.getuid?.() === 0) await nft(`add table inet ${this.bridge}\ndelete table inet ${this.bridge}\n`).catch(() => undefined);
  }
}

/** Decided before destination translation, with which a published port of another container would look like an allowed address. */
export function openRules(bridge: string, servers: readonly string[]): string {
  const refused = [...forbiddenNetworks, ...privateNetworks].map(formatIpv4Network).join(", ");
  const rules = [
    `iifname != "${bridge}" accept`,
    "meta nfproto ipv6 drop",
    "ct direction reply accept",
    // Docker answers names in the container, and asks the machine's name servers from there.
    ...(servers.length === 0 ? [] : [`ip daddr { ${servers.join(", ")} } meta l4proto { tcp, udp } th dport 53 accept`]),
    // The machine's own addresses are of the type local.
    "fib daddr type != unicast goto refuse",
    `ip daddr { ${refused} } goto refuse`,
  ];
  return [
    `add table inet ${bridge}`,
    `add chain inet ${bridge} refuse`,
    `add chain inet ${bridge} from-sandbox { type filter hook prerouting priority -150; }`,
    `flush chain inet ${bridge} refuse`,
    `flush chain inet ${bridge} from-sandbox`,
    `add rule inet ${bridge} refuse meta l4proto tcp reject with tcp reset`,
    `add rule inet ${bridge} refuse reject with icmp type port-unreachable`,
    ...rules.map((rule) => `add rule inet ${bridge} from-sandbox ${rule}`),
    "",
  ].join("\n");
}

/** The IPv4 addresses of the machine's name servers that a container can reach. */
function nameServers(): string[] {
  const texts = NAME_SERVERS.filter((file) => existsSync(file)).map((file) => readFileSync(file, "utf8"));
  const named = texts.flatMap((text) => [...text.matchAll(/^nameserver\s+(\S+)/gm)].map(([, address = ""]) => address));
  return [...new Set(named)].filter((address) => parseIpv4(address) !== null && !address.startsWith("127."));
}
