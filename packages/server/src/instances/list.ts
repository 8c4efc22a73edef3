import { PlatformError, splitRef } from "@aenv/contract";
import type { Caller } from "../access/access.ts";
import { isInScope } from "../access/scopes.ts";
import type { Collection } from "../stores/collection.ts";
import type { ListOptions } from "../stores/store.ts";
import type { InstanceRow } from "./row.ts";

export interface InstanceFilter {
  readonly status?: string | undefined;
  /** `name`, `name@version`, or empty for all. */
  readonly envName?: string | undefined;
  readonly owner?: string | undefined;
  /** `key=value`, each of which must match. */
  readonly label?: string | readonly string[] | undefined;
  /** Children too, which otherwise are not listed beside their roots. */
  readonly tree?: boolean;
  readonly limit: number;
  readonly after?: string | undefined;
}

export interface InstancePage {
  readonly rows: readonly InstanceRow[];
  /** The key after which the next page begins, or null at the end. */
  readonly next: string | null;
}

/** Lists instances. Only an admin sees those of other owners. */
export class InstanceList {
  readonly #rows: Collection<InstanceRow>;

  constructor(rows: Collection<InstanceRow>) {
    this.#rows = rows;
  }

  async page(filter: InstanceFilter, caller: Caller): Promise<InstancePage> {
    const matches = matcher(filter);
    const where = this.#where(filter, caller);
    const found: InstanceRow[] = [];
    let { after } = filter;
    for (;;) {
      const page = await this.#rows.list({ where, limit: 500, ...(after !== undefined && { after }) });
      for (const row of page) {
        after = row.key;
        if (matches(row.value) && isInScope(caller, row.value.environment.name)) found.push(row.value);
        if (found.length === filter.limit) return { rows: found, next: row.key };
      }
      if (page.length < 500) return { rows: found, next: null };
    }
  }

  /** The narrowest index for the filter. */
  #where(filter: InstanceFilter, caller: Caller): NonNullable<ListOptions["where"]> {
    const owner = caller.roles.has("admin") ? filter.owner : caller.owner;
    const { name } = splitRef(filter.envName ?? "");
    if (owner === undefined) return name === "" ? { index: "all", value: "yes" } : { index: "environment", value: name };
    return name === "" ? { index: "owner", value: owner } : { index: "ownerEnvironment", value: `${owner}\n${name}` };
  }
}

function matcher(filter: InstanceFilter): (row: InstanceRow) => boolean {
  const { version } = splitRef(filter.envName ?? "");
  const labels = (typeof filter.label === "string" ? [filter.label] : (filter.label ?? [])).map(parseLabel);
  return (row) => {
    if (row.parent !== undefined && filter.tree !== true) return false;
    if (filter.status !== undefined ? row.status !== filter.status : row.status === "Terminated") return false;
    if (version !== "" && row.environment.version !== version) return false;
    return labels.every(([key, value]) => row.labels[key] === value);
  };
}

function parseLabel(text: string): [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw new PlatformError("request.invalid", `label is '${text}'; write key=value`);
  return [text.slice(0, at), text.slice(at + 1)];
}
