import {
  type Destination,
  destinationsOf,
  type EgressPolicy,
  formatIpv4Network,
  type Ipv4Network,
  isEverywhere,
  parseIpv4Network,
  privateNetworks,
} from "@aenv/contract";

/** What all rules of a home share. */
export interface HomeRules {
  /** The name of the table, and the beginning of the names of the home's interfaces. */
  readonly prefix: string;
  readonly subnet: Ipv4Network;
  /** Queries for names are redirected to this port of the host's end. */
  readonly namePort: number;
}

/** An address that was the answer for an allowed name; `port` is null for every port. */
export interface ResolvedAddress {
  readonly address: string;
  readonly port: number | null;
}

/** Link-local addresses, metadata services of clouds, and addresses that are no endpoint. No policy allows them. */
export const forbiddenNetworks = [
  "0.0.0.0/8",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.0/24",
  "224.0.0.0/3",
].map((text) => parseIpv4Network(text) ?? never(text));

/** How long a refused destination is remembered, and not reported again. */
export const REFUSED_SECONDS = 60;

/**
 * The rules of a home. All packets of its sandboxes are decided in the first chain, before the kernel looks at destination translation of
 * others (published ports of Docker). Running it again changes nothing: elements of the sets stay.
 */
export function homeRules({ prefix, subnet, namePort }: HomeRules): string {
  const ours = `"${prefix}*"`;
  return script(prefix, [
    "add table inet T",
    "add set inet T addresses { type ifname . ipv4_addr; }",
    "add set inet T uplinks { type ifname; }",
    `add set inet T refused { type ifname . ipv4_addr . inet_service; flags dynamic,timeout; timeout ${REFUSED_SECONDS}s; size 4096; }`,
    "add map inet T policies { type ifname : verdict; }",
    "add chain inet T refuse",
    "add chain inet T from-sandbox { type filter hook prerouting priority -150; }",
    "add chain inet T forwarded { type filter hook forward priority 0; }",
    "add chain inet T names { type nat hook prerouting priority -100; }",
    "add chain inet T outgoing { type nat hook postrouting priority 100; }",
    ...["refuse", "from-sandbox", "forwarded", "names", "outgoing"].map((chain) => `flush chain inet T ${chain}`),

    `add rule inet T from-sandbox iifname != ${ours} accept`,
    "add rule inet T from-sandbox meta nfproto ipv6 drop",
    "add rule inet T from-sandbox iifname . ip saddr != @addresses drop",
    // Answers to connections of the server.
    "add rule inet T from-sandbox ct direction reply accept",
    "add rule inet T from-sandbox udp dport 53 accept",
    "add rule inet T from-sandbox iifname vmap @policies",
    "add rule inet T from-sandbox goto refuse",

    // A full set must not keep the packet from being refused, so the three are separate rules.
    "add rule inet T refuse meta l4proto { tcp, udp } update @refused { iifname . ip daddr . th dport }",
    "add rule inet T refuse meta l4proto tcp reject with tcp reset",
    "add rule inet T refuse reject with icmp type port-unreachable",

    // Other machines that use this one as a router do not reach sandboxes.
    `add rule inet T forwarded oifname ${ours} ct direction original drop`,
    `add rule inet T forwarded iifname ${ours} tcp flags syn tcp option maxseg size set rt mtu`,
    // Where forwarding was off before: the machine is a router for its sandboxes only.
    `add rule inet T forwarded iifname @uplinks oifname != ${ours} ct state new ct status & dnat == 0 drop`,

    `add rule inet T names iifname ${ours} udp dport 53 redirect to :${namePort}`,
    `add rule inet T outgoing ip saddr ${formatIpv4Network(subnet)} oifname != ${ours} masquerade`,
  ]);
}

/** Packets from the interface are dropped until they come from its own address. */
export function addressRules(prefix: string, networks: readonly { readonly name: string; readonly address: string }[]): string {
  return script(
    prefix,
    networks.map(({ name, address }) => `add element inet T addresses { "${name}" . ${address} }`),
  );
}

/**
 * The rules of one sandbox. `mark` is new for each policy: a connection is marked when it is accepted, and one with another mark is
 * decided again. So a connection that a new policy does not allow is cut, and others outlive the address's time in the set.
 */
export function policyRules({ prefix, subnet }: HomeRules, name: string, policy: EgressPolicy, mark: number): string {
  const forbidden = [...forbiddenNetworks, subnet];
  const accept = `ct mark set ${mark} accept`;
  const rules =
    policy === "none"
      ? []
      : [
          `ct mark ${mark} accept`,
          // The machine's own addresses are of the type local.
          "fib daddr type != unicast goto refuse",
          `ip daddr { ${forbidden.map(formatIpv4Network).join(", ")} } goto refuse`,
          ...destinationsOf(policy).flatMap((destination) => networkRule(destination, accept)),
          ...(policy === "open" ? [`ip daddr { ${privateNetworks.map(formatIpv4Network).join(", ")} } goto refuse`, accept] : []),
          `meta l4proto { tcp, udp } ip daddr . th dport @${name}-ports ${accept}`,
          `ip daddr @${name}-hosts ${accept}`,
        ];
  return script(prefix, [
    `add set inet T ${name}-ports { type ipv4_addr . inet_service; flags timeout; }`,
    `add set inet T ${name}-hosts { type ipv4_addr; flags timeout; }`,
    `add chain inet T ${name}`,
    `flush set inet T ${name}-ports`,
    `flush set inet T ${name}-hosts`,
    `flush chain inet T ${name}`,
    ...[...rules, "goto refuse"].map((rule) => `add rule inet T ${name} ${rule}`),
    `add element inet T policies { "${name}" : goto ${name} }`,
  ]);
}

/** Each address is added again, because adding an element that exists does not change its time on older kernels. */
export function resolvedRules(prefix: string, name: string, addresses: readonly ResolvedAddress[], seconds: number): string {
  return script(
    prefix,
    addresses.flatMap(({ address, port }) => {
      const [set, key] = port === null ? [`${name}-hosts`, address] : [`${name}-ports`, `${address} . ${port}`];
      const add = `add element inet T ${set} { ${key} timeout ${seconds}s }`;
      return [add, `delete element inet T ${set} { ${key} }`, add];
    }),
  );
}

/** Removes the rules of one sandbox. Each element and chain is added first, so that removing what does not exist is no error. */
export function removalRules(prefix: string, name: string, address: string): string {
  return script(prefix, [
    "add table inet T",
    `add chain inet T ${name}`,
    "add map inet T policies { type ifname : verdict; }",
    `add element inet T policies { "${name}" : goto ${name} }`,
    `delete element inet T policies { "${name}" : goto ${name} }`,
    `flush chain inet T ${name}`,
    `delete chain inet T ${name}`,
    ...["ports { type ipv4_addr . inet_service; flags timeout; }", "hosts { type ipv4_addr; flags timeout; }"].map(
      (set) => `add set inet T ${name}-${set}`,
    ),
    `delete set inet T ${name}-ports`,
    `delete set inet T ${name}-hosts`,
    "add set inet T addresses { type ifname . ipv4_addr; }",
    `add element inet T addresses { "${name}" . ${address} }`,
    `delete element inet T addresses { "${name}" . ${address} }`,
  ]);
}

export function isEveryName(policy: EgressPolicy): boolean {
  return policy === "open" || destinationsOf(policy).some(isEverywhere);
}

function networkRule(destination: Destination, accept: string): string[] {
  if (destination.kind !== "network") return [];
  const port = destination.port === null ? "" : ` meta l4proto { tcp, udp } th dport ${destination.port}`;
  return [`ip daddr ${formatIpv4Network(destination.network)}${port} ${accept}`];
}

/** One transaction: all lines apply, or none. T stands for the table. */
function script(table: string, lines: readonly string[]): string {
  return `${lines.map((line) => line.replace(/ inet T(?= |$)/, ` inet ${table}`)).join("\n")}\n`;
}

function never(text: string): never {
  throw new Error(`'${text}' is not a network`);
}
