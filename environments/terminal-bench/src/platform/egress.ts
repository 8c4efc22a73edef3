import type { OpenSandboxOptions } from "@aenv/kit";
import type { NetworkPolicy } from "../trial/plan/network.ts";

/**
 * What a sandbox may connect to; null for the public network, which is what the environment may use at most. Sandboxes have addresses of
 * IPv4 only, so an IPv6 entry beside others opens nothing.
 */
export function egressOf({ mode, hosts }: NetworkPolicy): NonNullable<OpenSandboxOptions["egress"]> | null {
  if (mode === "public") return null;
  const allow = mode === "no-network" ? [] : hosts.filter((host) => !isIpv6(host));
  return allow.length === 0 ? "none" : { allow };
}

/** Whether an entry of `allowed_hosts` is an address or a network of IPv6. */
export function isIpv6(host: string): boolean {
  return host.includes(":");
}
