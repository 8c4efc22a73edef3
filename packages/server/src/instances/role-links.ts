import { createHmac, timingSafeEqual } from "node:crypto";
import type { InstanceRow } from "./row.ts";

/** A key for one role of an instance, as the link of its agent has it. */
export interface RoleKey {
  readonly role: string;
  readonly mac: string;
}

const MAC_BYTES = 16;

/**
 * The keys of an instance's roles, by role; null if it has none. A key is `<agent key>.<role>.<mac>`: the agent key finds the row, and its
 * holder can compute no other role's mac, because only the row has the secret.
 */
export function roleKeysOf({ agentKey, linkSecret, slot }: InstanceRow): Readonly<Record<string, string>> | null {
  const roles = slot?.roles;
  if (roles === undefined || linkSecret === undefined) return null;
  return Object.fromEntries(roles.map((role) => [role, `${agentKey}.${role}.${macOf(linkSecret, role)}`]));
}

/** The agent key and the role's key in a link; the role's key is null in the link of an instance without roles. */
export function readAgentKey(text: string): { readonly agentKey: string; readonly role: RoleKey | null } {
  const [agentKey = "", role, mac, ...more] = text.split(".");
  if (role === undefined || mac === undefined || more.length > 0) return { agentKey: text, role: null };
  return { agentKey, role: { role, mac } };
}

export function isRoleKey({ linkSecret }: InstanceRow, { role, mac }: RoleKey): boolean {
  if (linkSecret === undefined) return false;
  const expected = Buffer.from(macOf(linkSecret, role));
  const given = Buffer.from(mac);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function macOf(secret: string, role: string): string {
  return createHmac("sha256", secret).update(role).digest().subarray(0, MAC_BYTES).toString("hex");
}
