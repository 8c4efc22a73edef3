import { PlatformError } from "@aenv/contract";
import { DEFAULT_PREFIX } from "./keys.ts";

export interface Host {
  readonly host: string;
  readonly port: number;
}

interface Common {
  readonly hosts: readonly [Host, ...Host[]];
  readonly isTls: boolean;
  readonly username?: string;
  readonly password?: string;
  readonly prefix: string;
}

/** A parsed Redis URL. */
export type RedisAddress =
  | (Common & { readonly mode: "single"; readonly db: number })
  | (Common & { readonly mode: "sentinel"; readonly db: number; readonly group: string; readonly sentinelPassword?: string })
  | (Common & { readonly mode: "cluster" });

const SHAPE =
  /^(?<tls>rediss?)(?:\+(?<mode>sentinel|cluster))?:\/\/(?:(?<login>.*)@)?(?<hosts>[^@/?#]+)(?<path>\/[^?#]*)?(?:\?(?<query>[^#]*))?$/s;

const FORMS = {
  single: "redis://[user:password@]host[:port][/database]",
  sentinel: "redis+sentinel://[user:password@]host[:port],host[:port]/group[/database]",
  cluster: "redis+cluster://[user:password@]host[:port],host[:port]",
} as const;

/** Errors do not quote the URL: in an invalid one a password may be anywhere. */
export function parseAddress(url: string): RedisAddress {
  const parts = SHAPE.exec(url)?.groups;
  if (parts === undefined) throw wrong("single", "it is not a Redis address");
  const mode = (parts.mode ?? "single") as RedisAddress["mode"];
  const query = readQuery(mode, parts.query ?? "");
  const common = {
    hosts: readHosts(mode, parts.hosts ?? ""),
    isTls: parts.tls === "rediss",
    ...readLogin(mode, parts.login ?? ""),
    prefix: query.get("prefix") ?? DEFAULT_PREFIX,
  };
  const path = (parts.path ?? "").split("/").slice(1);
  if (path.at(-1) === "") path.pop();
  switch (mode) {
    case "single":
      if (common.hosts.length > 1) throw wrong(mode, "it has several hosts; for those write redis+sentinel:// or redis+cluster://");
      if (path.length > 1) throw wrong(mode, "its path has more than a database");
      return { mode, ...common, db: readDatabase(mode, path[0]) };
    case "sentinel": {
      const [group = "", db, ...rest] = path.map((part) => decodePart(mode, part));
      if (group === "") throw wrong(mode, "it does not name the group that the sentinels monitor");
      if (rest.length > 0) throw wrong(mode, "its path has more than a group and a database");
      const sentinelPassword = query.get("sentinelPassword");
      return { mode, ...common, group, db: readDatabase(mode, db), ...(sentinelPassword !== null && { sentinelPassword }) };
    }
    case "cluster":
      if (path.length > 0) throw wrong(mode, "a cluster has no databases to choose from");
      return { mode, ...common };
  }
}

/** The address as messages show it, without secrets. */
export function describeAddress(address: RedisAddress): string {
  const hosts = address.hosts.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`).join(",");
  return address.mode === "single" ? `Redis at ${hosts}` : `the Redis ${address.mode} at ${hosts}`;
}

function readHosts(mode: RedisAddress["mode"], text: string): [Host, ...Host[]] {
  const fallback = mode === "sentinel" ? 26379 : 6379;
  const hosts = text.split(",").map((entry) => {
    const parts = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s]+))(?::(\d+))?$/i.exec(entry);
    const host = parts?.[1] ?? parts?.[2];
    if (host === undefined) throw wrong(mode, "a host is empty, or its port is not a number");
    const port = Number(parts?.[3] ?? fallback);
    if (port < 1 || port > 65_535) throw wrong(mode, "a port is not between 1 and 65535");
    return { host, port };
  });
  return hosts as [Host, ...Host[]];
}

function readLogin(mode: RedisAddress["mode"], text: string): { username?: string; password?: string } {
  const [, username = "", password = ""] = /^([^:]*):?(.*)$/s.exec(text) ?? [];
  return {
    ...(username !== "" && { username: decodePart(mode, username) }),
    ...(password !== "" && { password: decodePart(mode, password) }),
  };
}

function readDatabase(mode: RedisAddress["mode"], text = "0"): number {
  if (!/^\d{1,5}$/.test(text)) throw wrong(mode, "its database is not a number");
  return Number(text);
}

function readQuery(mode: RedisAddress["mode"], text: string): URLSearchParams {
  const query = new URLSearchParams(text);
  const known = mode === "sentinel" ? ["prefix", "sentinelPassword"] : ["prefix"];
  for (const name of query.keys()) {
    if (!known.includes(name)) throw wrong(mode, `after the '?' only ${known.join(" and ")} is allowed`);
  }
  return query;
}

function decodePart(mode: RedisAddress["mode"], text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong(mode, "a '%' in it is not followed by two hexadecimal digits; write %25 for a '%'");
  }
}

function wrong(mode: RedisAddress["mode"], why: string): PlatformError {
  return new PlatformError("store.invalid", `the Redis address cannot be used: ${why}. Write ${FORMS[mode]}, or rediss for TLS`);
}
