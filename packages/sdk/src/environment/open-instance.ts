import { FIRST_INSTANCE, headers, type InstanceRecord, instancePrefix } from "@aenv/contract";
import { type Addresses, areOnOneHost, dataUrlFrom } from "../platform/addresses.ts";

/** An instance that an environment uses, and how to reach it. */
export interface OpenInstance {
  readonly record: InstanceRecord;
  /** Base URL of its routes. */
  readonly url: string;
  /** Sent with every request to it. */
  readonly headers: Readonly<Record<string, string>>;
  /** Its id in the control API. */
  readonly controlId: string;
  /** Whether the SDK created it and must end it. */
  readonly isOwned: boolean;
}

type LocalAddresses = Extract<Addresses, { mode: "local" }>;

/**
 * An environment that already runs. Without an id of its own it gets the one that the original uses, `test`. The token was passed
 * together with this address.
 */
export function existingInstance(addresses: LocalAddresses, now: Date, token: string): OpenInstance {
  const since = now.toISOString();
  const { dataUrl: url, instanceId } = addresses;
  const record = { id: instanceId ?? "test", status: "Running", ip: new URL(url).hostname, created_at: since, updated_at: since };
  const headers = { ...proxyHeaders(record), ...(isBehindGateway(url) && bearer(token)) };
  return { record, url, headers, controlId: instanceId ?? FIRST_INSTANCE, isOwned: false };
}

/** An instance that the SDK created: behind the gateway, or as a slot in a local sandbox. */
export function createdInstance(addresses: Addresses, record: InstanceRecord, token: string): OpenInstance {
  const { id } = record;
  if (addresses.mode === "local") {
    return { record, url: addresses.sandboxUrl + instancePrefix(id), headers: proxyHeaders(record), controlId: id, isOwned: true };
  }
  const url = addresses.dataUrl ?? dataUrlFrom(addresses.controlUrl, record.data_url);
  const headers = { ...proxyHeaders(record), ...(takesToken(record) && mayHaveToken(addresses, url) && bearer(token)) };
  return { record, url, headers, controlId: id, isOwned: true };
}

/** Whether its data port requires a token that is not sent, because the port is not known to belong to the platform. */
export function isTokenWithheld(addresses: Addresses, { record, url }: OpenInstance): boolean {
  return addresses.mode === "remote" && needsToken(record) && !mayHaveToken(addresses, url);
}

/** Whether an AEnv platform runs the instance: only that gives links for agents. */
export function isOnPlatform(record: InstanceRecord): boolean {
  return agentUrlOf(record) !== null || roleUrlsOf(record) !== null;
}

/** The URLs that give access to the tools of each role only; null for an environment without roles. */
export function roleUrlsOf({ role_urls: urls }: InstanceRecord): Readonly<Record<string, string>> | null {
  return urls ?? null;
}

/** The URL that gives access to the instance's tools only. Null if it has roles, or the server is not an AEnv platform. */
export function agentUrlOf({ agent_url: url }: InstanceRecord): string | null {
  return typeof url === "string" && url !== "" ? url : null;
}

/** Options that the server could not apply. */
export function warningsOf({ warnings }: InstanceRecord): readonly string[] {
  return Array.isArray(warnings) ? warnings.filter((one) => typeof one === "string") : [];
}

/** What runs an instance, as far as its server says. */
export interface InstanceRuntime {
  readonly engine: string | null;
  /** Whether its sandbox can neither see nor harm the machine that it runs on. */
  readonly isIsolated: boolean | null;
  /** `shared` or `instance`. */
  readonly isolation: string | null;
  readonly serverVersion: string | null;
}

export function runtimeOf({
  engine = null,
  isolated: isIsolated = null,
  server_version: serverVersion = null,
  env,
}: InstanceRecord): InstanceRuntime {
  const isolation = env?.deploy_config?.isolation;
  // An AEnv platform gives each instance a process of its own unless the config says otherwise.
  const usual = engine === null ? null : "instance";
  return { engine, isIsolated, isolation: typeof isolation === "string" ? isolation : usual, serverVersion };
}

/** Only an AEnv platform sets this, and it does not forward tokens to environments. The original's gateway would forward them. */
function takesToken(record: InstanceRecord): boolean {
  return needsToken(record) || record.data_access === "id or token";
}

function needsToken(record: InstanceRecord): boolean {
  return record.data_access === "token";
}

/** True for a data port that the caller configured, or that is on the host of the control API, which receives the token anyway. */
function mayHaveToken(addresses: Extract<Addresses, { mode: "remote" }>, url: string): boolean {
  return addresses.dataUrl !== null || areOnOneHost(addresses.controlUrl, url);
}

/** The gateway's URLs contain an instance's or a service's id; an environment without a gateway has its routes at the root. */
function isBehindGateway(url: string): boolean {
  return /\/env-(?:instance|service)\/[^/]+$/.test(url);
}

function bearer(token: string): Record<string, string> {
  return token === "" ? {} : { authorization: `Bearer ${token}` };
}

/** The gateway finds the instance by these headers; a sandbox ignores them. */
function proxyHeaders({ id, ip }: InstanceRecord): Record<string, string> {
  const host = ip?.includes(":") && !ip.startsWith("[") ? `[${ip}]` : ip;
  return { [headers.proxyUrl]: `http://${host}:8081`, [headers.instanceId]: id };
}
