import { FIRST_INSTANCE, headers, type InstanceRecord, instancePrefix } from "@aenv/contract";
import type { Addresses } from "./addresses.ts";

/** An instance that an environment uses, and how to reach it. */
export interface HeldInstance {
  readonly record: InstanceRecord;
  /** Where its routes begin. */
  readonly url: string;
  /** Sent with every request to it. */
  readonly headers: Readonly<Record<string, string>>;
  /** Its id for those who make and end instances. */
  readonly controlId: string;
  /** Whether it is ours to end. */
  readonly isOwned: boolean;
}

type LocalAddresses = Extract<Addresses, { mode: "local" }>;

/** An environment that runs already. Its id is the original's word for it when it has none of its own. */
export function foundInstance(addresses: LocalAddresses, now: Date): HeldInstance {
  const since = now.toISOString();
  const ip = new URL(addresses.dataUrl).hostname;
  const record = { id: addresses.instanceId ?? "test", status: "Running", ip, created_at: since, updated_at: since };
  const controlId = addresses.instanceId ?? FIRST_INSTANCE;
  return { record, url: addresses.dataUrl, headers: proxyHeaders(record), controlId, isOwned: false };
}

/** An instance that was made for us: behind the gateway, or as a seat in a local box. */
export function madeInstance(addresses: Addresses, record: InstanceRecord): HeldInstance {
  const url = addresses.mode === "remote" ? addresses.dataUrl : addresses.boxUrl + instancePrefix(record.id);
  return { record, url, headers: proxyHeaders(record), controlId: record.id, isOwned: true };
}

/** The link that opens an instance's tools and nothing else; only our platform gives one, so null tells others apart. */
export function agentUrlOf({ agent_url: url }: InstanceRecord): string | null {
  return typeof url === "string" && url !== "" ? url : null;
}

/** The gateway finds the instance by these; a box does not mind them. */
function proxyHeaders({ id, ip }: InstanceRecord): Record<string, string> {
  const host = ip?.includes(":") && !ip.startsWith("[") ? `[${ip}]` : ip;
  return { [headers.proxyUrl]: `http://${host}:8081`, [headers.instanceId]: id };
}
