import { existsSync, readFileSync } from "node:fs";
import { formatIpv4Network, parseIpv4, privateNetworks } from "@aenv/contract";
import { command, nft } from "../network/commands.ts";
import { forbiddenNetworks } from "../network/rules.ts";

/** Where a machine's own name servers are listed; the daemon uses the second list if the first one names only a loopback address. */
const NAME_SERVERS = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];

const ATTEMPTS = 3;

/**
 * Rules on this machine for sandboxes with open egress: like those of the oci engine, they reach public addresses only, and not each other.
 * Only root can set them, and they count if the daemon's bridge is in this network namespace.
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

  /** After the network was created: containers in it do not reach each other by IPv4. Why it is not possible, or null. */
  async separate(subnets: readonly string[]): Promise<string | null> {
    return nft(separationRules(this.bridge, subnets)).then(
      () => null,
      (error: Error) => error.message,
    );
  }

  /**
   * After a container was connected: the ports of the bridge forward nothing to each other, of no protocol. The rules of `separate` hold
   * until then. Why it is not possible, or null.
   */
  async isolatePorts(): Promise<string | null> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const ports = openPorts(await command("ip", ["-details", "-json", "link", "show", "master", this.bridge]));
      if (ports.length === 0) return null;
      const lines = ports.map((port) => `link set dev ${port} type bridge_slave isolated on\n`);
      // A port whose container has ended since is skipped.
      await command("ip", ["-force", "-batch", "-"], lines.join("")).catch(() => undefined);
    }
    return `the ports of the bridge ${this.bridge} cannot be isolated; that needs Linux 4.18 and iproute2 4.18`;
  }

  /** After the network was created: whether the rules see its packets. */
  isInForce(): boolean {
    return readFileSync("/proc/self/net/dev", "utf8").includes(`${this.bridge}:`);
  }

  /** When the network has been removed. Idempotent. */
  async remove(): Promise<void> {
    if (process.getuid?.() !== 0) return;
    // One by one: a kernel without the family bridge has the other.
    for (const family of ["inet", "bridge"])
      await nft(`add table ${family} ${this.bridge}\ndelete table ${family} ${this.bridge}\n`).catch(() => undefined);
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

/** Packets between the ports of a bridge do not come to the rules above, which are for packets that the machine routes. */
export function separationRules(bridge: string, subnets: readonly string[]): string {
  return [
    `add table bridge ${bridge}`,
    `add chain bridge ${bridge} between { type filter hook forward priority 0; }`,
    `flush chain bridge ${bridge} between`,
    ...subnets.map((subnet) => `add rule bridge ${bridge} between ip saddr ${subnet} ip daddr ${subnet} drop`),
    "",
  ].join("\n");
}

/** The ports of a bridge in `ip -details -json link` that are not isolated. */
function openPorts(json: string): string[] {
  const ports = JSON.parse(json.trim() || "[]") as readonly {
    readonly ifname?: string;
    readonly linkinfo?: { readonly info_slave_data?: { readonly isolated?: boolean } };
  }[];
  return ports.flatMap(({ ifname, linkinfo }) => (ifname === undefined || linkinfo?.info_slave_data?.isolated === true ? [] : [ifname]));
}

/** The IPv4 addresses of the machine's name servers that a container can reach. */
function nameServers(): string[] {
  const texts = NAME_SERVERS.filter((file) => existsSync(file)).map((file) => readFileSync(file, "utf8"));
  const named = texts.flatMap((text) => [...text.matchAll(/^nameserver\s+(\S+)/gm)].map(([, address = ""]) => address));
  return [...new Set(named)].filter((address) => parseIpv4(address) !== null && !address.startsWith("127."));
}
