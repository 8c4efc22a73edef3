import { createHash } from "node:crypto";
import { formatIpv4Network, type Ipv4Network, overlapsIpv4, PlatformError, parseIpv4Network } from "@aenv/contract";
import type { Records } from "./records.ts";
import { addBlackhole, listRoutes, type Route, removeBlackhole } from "./routes.ts";
import type { HomeRules } from "./rules.ts";
import { checkSubnet, freeSubnets, prefixOf } from "./subnet.ts";

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
  records: Records<StoredHome>,
  isInUse: () => Promise<boolean>,
): Promise<Home> {
  const prefix = prefixOf(home);
  const number = createHash("sha256").update(home).digest().readUInt32BE(4);
  const metric = 1 + (number % 2 ** 31);
  const namePort = FIRST_NAME_PORT + (number % NAME_PORTS);
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
  const candidates = wanted !== undefined ? [parseWanted(wanted)] : await freeCandidates(home, kept);
  for (const subnet of candidates) {
    const claimed = await claim(subnet);
    if (claimed === null) continue;
    await records.replace(RECORD, { prefix, subnet: formatIpv4Network(subnet) });
    return claimed;
  }
  throw new PlatformError(
    "sandbox.unsupported",
    wanted === undefined
      ? "no subnet is free for sandboxes: routes of this machine use all of 10.64.0.0/10; name another with the setting sandboxSubnet"
      : `the subnet ${wanted} for sandboxes overlaps a route of this machine (ip route show table all); name another one`,
  );
}

export async function forgetHome({ subnet, metric }: Home): Promise<void> {
  await removeBlackhole(formatIpv4Network(subnet), metric);
}

/** A route of something else to addresses of the subnet; null if there is none. */
export function collisionWith(subnet: Ipv4Network, routes: readonly Route[], prefix: string, metric: number): Route | null {
  const isOurs = ({ device, type, metric: own }: Route) => device?.startsWith(prefix) === true || (type === "blackhole" && own === metric);
  return routes.find((route) => overlapsIpv4(route.network, subnet) && !isOurs(route)) ?? null;
}

function parseWanted(text: string): Ipv4Network {
  const subnet = parseIpv4Network(text);
  if (subnet === null)
    throw new PlatformError("request.invalid", `'${text}' is not a subnet for sandboxes; write one such as 10.90.0.0/16`);
  checkSubnet(subnet);
  return subnet;
}

async function freeCandidates(home: string, kept: Ipv4Network | null): Promise<Ipv4Network[]> {
  const routes = await listRoutes();
  const free = freeSubnets(
    home,
    routes.map(({ network }) => network),
  );
  return kept === null ? free : [kept, ...free];
}
