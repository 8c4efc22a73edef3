import { strip } from "@aenv/benchmark";
import { list } from "../../fields/containers.ts";
import { type Field, InvalidValue, optional, refine } from "../../fields/field.ts";
import { oneOf, text } from "../../fields/scalars.ts";
import { parseAddress, parseNetwork } from "./address.ts";

export const NETWORK_MODES = ["public", "no-network", "allowlist"] as const;
export type NetworkMode = (typeof NETWORK_MODES)[number];

/** Which editions of the format are read: that of the recorded reference, or also the additions of later releases. */
export type Edition = "reference" | "later";

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export const networkMode = oneOf(...NETWORK_MODES);

/** Hosts in lower case without trailing dots. */
export function allowedHosts(edition: Edition): Field<readonly string[]> {
  return refine(list(text), (hosts, at) => hosts.map((host, i) => parseHost(host, `${at}[${i}]`, edition)));
}

/** A phase's policy: without a mode there are no hosts either. */
export function phaseNetworkFields(edition: Edition) {
  return { network_mode: optional(networkMode), allowed_hosts: optional(allowedHosts(edition)) };
}

interface NetworkFields {
  readonly network_mode: NetworkMode | null;
  readonly allowed_hosts: readonly string[] | null;
}

/** Hosts and mode must fit together. Later editions accept an allowlist without hosts, or without that key: nothing can be reached. */
export function checkHosts({ network_mode, allowed_hosts }: NetworkFields, at: string, edition: Edition): void {
  const where = at === "" ? "allowed_hosts" : `${at}.allowed_hosts`;
  if (network_mode === "allowlist") {
    if (edition === "reference" && (allowed_hosts === null || allowed_hosts.length === 0))
      throw new InvalidValue(where, "an allowlist needs at least one host");
    return;
  }
  if (allowed_hosts === null) return;
  if (network_mode === null) throw new InvalidValue(where, 'only allowed together with network_mode = "allowlist"');
  if (allowed_hosts.length > 0) throw new InvalidValue(where, `must be empty with network_mode = "${network_mode}"`);
}

export function checkedHosts<T extends NetworkFields>(field: Field<T>, edition: Edition): Field<T> {
  return refine(field, (value, at) => {
    checkHosts(value, at, edition);
    return value;
  });
}

/** A host name, `*.` and a domain, or in later editions an address or a network, in the form in which Python writes it. */
export function parseHost(given: string, at = "", edition: Edition = "later"): string {
  const host = strip(given).toLowerCase().replace(/\.+$/, "");
  const found = isAddressText(host) ? null : parseName(host, edition);
  const known = found ?? (edition === "later" ? (host.includes("/") ? parseNetwork(host) : parseAddress(host)) : null);
  if (known !== null) return known;
  throw new InvalidValue(
    at,
    `'${given}' is not a host; write a name such as pypi.org, *.pypi.org for its subdomains, an address, or a network such as 10.0.0.0/8`,
  );
}

function isAddressText(host: string): boolean {
  return host.includes("/") || host.includes(":");
}

function parseName(host: string, edition: Edition): string | null {
  const domain = host.startsWith("*.") ? host.slice(2) : host;
  if (domain !== host && edition === "later" && parseAddress(domain) !== null) return null;
  return domain.split(".").every((label) => LABEL.test(label)) ? host : null;
}

/** Whether a policy's host covers a name. */
export function hostMatches(pattern: string, name: string): boolean {
  const host = name.toLowerCase().replace(/\.+$/, "");
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) && host.length > pattern.length - 1 : host === pattern;
}
