import { createHash } from "node:crypto";
import { formatIpv4Network, type Ipv4Network, overlapsIpv4, PlatformError, parseIpv4Network } from "@aenv/contract";
import type { RecordFiles } from "./records.ts";
import { addBlackhole, listRoutes, type Route, removeBlackhole } from "./routes.ts";
import type { HomeRules } from "./rules.ts";
import { freeSubnets, parseSubnet, prefixOf } from "./subnet.ts";

/** What a home keeps: the subnet of its sandboxes. */
export interface StoredHome {
  /** Differs if the folder was copied from another home. */
  readonly prefix: string;
  readonly subnet: string;
}

export interface Home extends HomeRules {
  /** Distinguishes the route that claims the subnet from those of other homes. */
  readonly metric: number;
}

const RECORD = "home";
/** Below the ports that the system gives to outgoing connections. */
const FIRST_NAME_PORT = 20_000;
const NAME_PORTS = 10_000;

/** Claims a subnet for the home: the stored one, the one that the operator wants, or one that nothing on this machine uses. */
export async function claimHome(
  home: string,
  wanted: string | undefined,
  records: RecordFiles<StoredHome>,
  isInUse: () => Promise<boolean>,
): Promise<Home> {
  const { prefix, metric, namePort } = numbersOf(home);
  const claim = async (subnet: Ipv4Network): Promise<Home | null> => {
    if (collisionWith(subnet, await listRoutes(), prefix, metric) !== null) return null;
    await addBlackhole(formatIpv4Network(subnet), metric);
    // Another home may have done the same at the same time. Then both try another one.
    if (collisionWith(subnet, await listRoutes(), prefix, metric) === null) return { prefix, subnet, metric, namePort };
    await removeBlackhole(formatIpv4Network(subnet), metric);
    return null;
  };

  const stored = await records.find(RECORD);
  const kept = stored === null || stored.prefix !== prefix ? null : parseIpv4Network(stored.subnet);
  if (kept !== null && (await isInUse())) {
    // The addresses of running sandboxes cannot change.
    await addBlackhole(formatIpv4Network(kept), metric);
    return { prefix, subnet: kept, metric, namePort };
  }
  const candidates = candidatesFor(home, wanted, kept, await listRoutes());
  for (const subnet of candidates) {
    const claimed = await claim(subnet);
    if (claimed === null) continue;
    await records.replace(RECORD, { prefix, subnet: formatIpv4Network(subnet) });
    return claimed;
  }
  throw noneFree(wanted);
}

/** A subnet that the home could claim now. Nothing is changed. */
export async function findSubnet(home: string, wanted: string | undefined): Promise<Ipv4Network> {
  const { prefix, metric } = numbersOf(home);
  const routes = await listRoutes();
  const others = routes.filter((route) => !isOurs(route, prefix, metric));
  const [free] = candidatesFor(home, wanted, null, others).filter((subnet) => collisionWith(subnet, others, prefix, metric) === null);
  if (free === undefined) throw noneFree(wanted);
  return free;
}

export async function forgetHome({ subnet, metric }: Home): Promise<void> {
  await removeBlackhole(formatIpv4Network(subnet), metric);
}

/** A route of something else to addresses of the subnet; null if there is none. */
export function collisionWith(subnet: Ipv4Network, routes: readonly Route[], prefix: string, metric: number): Route | null {
  return routes.find((route) => overlapsIpv4(route.network, subnet) && !isOurs(route, prefix, metric)) ?? null;
}

function isOurs({ device, type, metric: own }: Route, prefix: string, metric: number): boolean {
  return device?.startsWith(prefix) === true || (type === "blackhole" && own === metric);
}

export function metricOf(home: string): number {
  return 1 + (numberOf(home) % 2 ** 31);
}

function numbersOf(home: string): Pick<Home, "prefix" | "metric" | "namePort"> {
  return { prefix: prefixOf(home), metric: metricOf(home), namePort: FIRST_NAME_PORT + (numberOf(home) % NAME_PORTS) };
}

function numberOf(home: string): number {
  return createHash("sha256").update(home).digest().readUInt32BE(4);
}

function candidatesFor(home: string, wanted: string | undefined, kept: Ipv4Network | null, routes: readonly Route[]): Ipv4Network[] {
  if (wanted !== undefined) return [parseSubnet(wanted)];
  const free = freeSubnets(
    home,
    routes.map(({ network }) => network),
  );
  return kept === null ? free : [kept, ...free];
}

function noneFree(wanted: string | undefined): PlatformError {
  return new PlatformError(
    "sandbox.unsupported",
    wanted === undefined
      ? "no subnet is free for sandboxes: routes of this machine use all of 10.64.0.0/10 (see 'ip route show table all'); name one that is free with the setting sandboxSubnet, such as 172.30.0.0/16"
      : `the setting sandboxSubnet is ${wanted}, which overlaps a route of this machine (see 'ip route show table all'); name a network that is free`,
  );
}
