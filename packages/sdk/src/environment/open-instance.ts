import { FIRST_INSTANCE, headers, type InstanceRecord, instancePrefix } from "@aenv/contract";
import { type Addresses, areOnOneHost, dataUrlFrom } from "../platform/addresses.ts";

/** An instance that an environment uses, and how to reach it. */
export interface OpenInstance {
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

/**
 * An environment that runs already. Its id is the original's word for it when it has none of its own. The token is one that
 * was given for this very address.
 */
export function existingInstance(addresses: LocalAddresses, now: Date, token: string): OpenInstance {
  const since = now.toISOString();
  const { dataUrl: url, instanceId } = addresses;
  const record = { id: instanceId ?? "test", status: "Running", ip: new URL(url).hostname, created_at: since, updated_at: since };
  const headers = { ...proxyHeaders(record), ...(isBehindGateway(url) && bearer(token)) };
  return { record, url, headers, controlId: instanceId ?? FIRST_INSTANCE, isOwned: false };
}

/** An instance that was made for us: behind the gateway, or as a slot in a local sandbox. */
export function createdInstance(addresses: Addresses, record: InstanceRecord, token: string): OpenInstance {
  const { id } = record;
  if (addresses.mode === "local") {
    return { record, url: addresses.sandboxUrl + instancePrefix(id), headers: proxyHeaders(record), controlId: id, isOwned: true };
  }
  const url = addresses.dataUrl ?? dataUrlFrom(addresses.controlUrl, record.data_url);
  const headers = { ...proxyHeaders(record), ...(needsToken(record) && mayHaveToken(addresses, url) && bearer(token)) };
  return { record, url, headers, controlId: id, isOwned: true };
}

/** Whether its data port asks for a token that it is not shown, because it is not known to be the platform's own. */
export function isTokenWithheld(addresses: Addresses, { record, url }: OpenInstance): boolean {
  return addresses.mode === "remote" && needsToken(record) && !mayHaveToken(addresses, url);
}

/** The link that opens an instance's tools and nothing else; only our platform gives one, so null tells others apart. */
export function agentUrlOf({ agent_url: url }: InstanceRecord): string | null {
  return typeof url === "string" && url !== "" ? url : null;
}

/** What the server could not do as it was asked to. */
export function warningsOf({ warnings }: InstanceRecord): readonly string[] {
  return Array.isArray(warnings) ? warnings.filter((one) => typeof one === "string") : [];
}

/** Only our platform says so, and it keeps tokens from the environments behind it. The original's gateway would pass them on. */
function needsToken(record: InstanceRecord): boolean {
  return record.data_access === "token";
}

/** A data port that the caller has named, or that is on the host of the control API, which was shown the token already. */
function mayHaveToken(addresses: Extract<Addresses, { mode: "remote" }>, url: string): boolean {
  return addresses.dataUrl !== null || areOnOneHost(addresses.controlUrl, url);
}

/** One instance or service by its id; an environment that is served by itself has its routes at the root. */
function isBehindGateway(url: string): boolean {
  return /\/env-(?:instance|service)\/[^/]+$/.test(url);
}

function bearer(token: string): Record<string, string> {
  return token === "" ? {} : { authorization: `Bearer ${token}` };
}

/** The gateway finds the instance by these; a sandbox does not mind them. */
function proxyHeaders({ id, ip }: InstanceRecord): Record<string, string> {
  const host = ip?.includes(":") && !ip.startsWith("[") ? `[${ip}]` : ip;
  return { [headers.proxyUrl]: `http://${host}:8081`, [headers.instanceId]: id };
}
