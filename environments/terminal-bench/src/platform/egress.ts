import type { OpenSandboxOptions } from "@aenv/kit";
import type { NetworkPolicy } from "../network/policy.ts";

/** What a sandbox may connect to; null for the public network, which is what the environment may use at most. */
export function egressOf({ mode, hosts }: NetworkPolicy): NonNullable<OpenSandboxOptions["egress"]> | null {
  if (mode === "public") return null;
  return mode === "no-network" || hosts.length === 0 ? "none" : { allow: [...hosts] };
}
