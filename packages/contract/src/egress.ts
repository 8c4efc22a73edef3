import * as z from "zod";
import { containsIpv4, type Ipv4Network, overlapsIpv4, parseIpv4Network } from "./ipv4.ts";

const MAX_ALLOWED = 256;
const NAME = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/;

/** One entry of an allow list. `port` is null for every port. */
export type Destination =
  | { readonly kind: "name"; readonly name: string; readonly port: number | null }
  /** Every name that ends with `.name`, but not `name` itself. */
  | { readonly kind: "names"; readonly name: string; readonly port: number | null }
  | { readonly kind: "network"; readonly network: Ipv4Network; readonly port: number | null };

/**
 * Where programs of a sandbox may connect to: nowhere; to the listed destinations (`api.example.com:443`, `*.example.com`,
 * `10.1.0.0/16:5432`); or to every public address. Private networks must be listed. The machine itself, other sandboxes and metadata
 * services are never reachable.
 */
export const egressPolicy = z.union(
  [
    z.literal("none"),
    z.literal("open"),
    z.strictObject({
      allow: z
        .array(z.string().refine((text) => parseDestination(text) !== null))
        .min(1)
        .max(MAX_ALLOWED),
    }),
  ],
  {
    error: `must be "none", "open" or { "allow": [...] } with up to ${MAX_ALLOWED} entries such as "api.example.com:443", "*.example.com" or "10.1.0.0/16:5432"`,
  },
);

export type EgressPolicy = z.infer<typeof egressPolicy>;

/** Networks that are not part of the internet: a policy has to list them. */
export const privateNetworks = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15"].map(knownNetwork);

/** Null if the text is not a destination. */
export function parseDestination(text: string): Destination | null {
  const [, host = "", portText] = /^([^:]+)(?::(\d{1,5}))?$/.exec(text.toLowerCase()) ?? [];
  const port = portText === undefined ? null : Number(portText);
  if (port !== null && (port < 1 || port > 65_535)) return null;
  const network = parseIpv4Network(host);
  if (network !== null) return { kind: "network", network, port };
  const isWildcard = host.startsWith("*.");
  const name = (isWildcard ? host.slice(2) : host).replace(/\.$/, "");
  // A name that ends with a number is a mistyped address: no top-level domain is one.
  if (name.length > 253 || !NAME.test(name) || /(?:^|\.)\d+$/.test(name)) return null;
  return { kind: isWildcard ? "names" : "name", name, port };
}

/** The entries of a policy that was checked; empty for `none` and `open`. */
export function destinationsOf(policy: EgressPolicy): Destination[] {
  return typeof policy === "string" ? [] : policy.allow.flatMap((text) => parseDestination(text) ?? []);
}

/** The first part of a policy that a limit does not allow, as it is written there; null if the limit allows all of it. */
export function beyondEgress(policy: EgressPolicy, limit: EgressPolicy): string | null {
  if (policy === "none") return null;
  if (limit === "none") return typeof policy === "string" ? policy : (policy.allow[0] ?? null);
  const limits = destinationsOf(limit);
  if (policy === "open") return limit === "open" || limits.some(isEverywhere) ? null : policy;
  const isWithin = (text: string) => {
    const destination = parseDestination(text);
    return destination !== null && (limit === "open" ? isPublic(destination) : limits.some((one) => covers(one, destination)));
  };
  return policy.allow.find((text) => !isWithin(text)) ?? null;
}

/** What both policies allow. Of two entries that overlap, neither counts unless one contains the other. */
export function narrowEgress(policy: EgressPolicy, limit: EgressPolicy): EgressPolicy {
  if (beyondEgress(policy, limit) === null) return policy;
  if (beyondEgress(limit, policy) === null) return limit;
  const within = (one: EgressPolicy, other: EgressPolicy) =>
    typeof one === "string" ? [] : one.allow.filter((text) => beyondEgress({ allow: [text] }, other) === null);
  const allow = [...new Set([...within(policy, limit), ...within(limit, policy)])].slice(0, MAX_ALLOWED);
  return allow.length === 0 ? "none" : { allow };
}

/** `0.0.0.0/0`: every address, private ones too. */
export function isEverywhere(destination: Destination): boolean {
  return destination.kind === "network" && destination.port === null && destination.network.prefix === 0;
}

/** Whether an allow list's entry allows connections to this name, whatever its port. */
export function matchesName(destination: Destination, name: string): boolean {
  if (destination.kind === "network") return false;
  return destination.kind === "name" ? name === destination.name : name.endsWith(`.${destination.name}`);
}

function isPublic(destination: Destination): boolean {
  return destination.kind !== "network" || !privateNetworks.some((network) => overlapsIpv4(network, destination.network));
}

function covers(limit: Destination, wanted: Destination): boolean {
  if (isEverywhere(limit)) return true;
  if (limit.port !== null && limit.port !== wanted.port) return false;
  if (limit.kind === "network") return wanted.kind === "network" && containsIpv4(limit.network, wanted.network);
  if (wanted.kind === "network") return false;
  if (wanted.kind === "name") return matchesName(limit, wanted.name);
  return limit.kind === "names" && (wanted.name === limit.name || matchesName(limit, wanted.name));
}

function knownNetwork(text: string): Ipv4Network {
  const network = parseIpv4Network(text);
  if (network === null) throw new Error(`'${text}' is not a network`);
  return network;
}
