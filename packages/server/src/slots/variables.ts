import { type Variables, variableKind } from "@aenv/contract";
import type { InstanceRow } from "../instances/row.ts";

/**
 * The variables of one instance: the environment's own, over them the caller's, and over all of them the platform's, which nobody
 * else sets. An empty name or version from a client that did not know it is filled in.
 */
export function layVariables(own: Variables, callers: Variables, platform: Variables): Variables {
  const laid: Record<string, string> = { ...own };
  for (const [name, value] of Object.entries(callers)) {
    const kind = variableKind(name);
    // The caller's are checked when the request comes in; a sandbox that tells its variables for a fork is not trusted with them either.
    if (kind === "platform" || (kind === "identity" && value === "")) continue;
    laid[name] = value;
  }
  return { ...laid, ...platform };
}

/** What the platform tells an instance. Sandboxes that are processes run no image: what one would hold is the environment's own to find. */
export function platformVariables({ datasource }: Pick<InstanceRow, "datasource">): Variables {
  return datasource === "" ? {} : { AENV_DATASOURCE: datasource };
}

export function isSameVariables(one: Variables, other: Variables): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}
