import { type Variables, variableKind } from "@aenv/contract";

/**
 * The variables of one instance: the environment's own, overridden by the caller's, overridden by the platform's. An empty name or
 * version from a client that did not know it does not override.
 */
export function mergeVariables(own: Variables, callers: Variables, platform: Variables): Variables {
  const merged: Record<string, string> = { ...own };
  for (const [name, value] of Object.entries(callers)) {
    const kind = variableKind(name);
    // A request is checked when it comes in. The variables that a sandbox reports for a fork are not trusted either.
    if (kind === "platform" || (kind === "identity" && value === "")) continue;
    merged[name] = value;
  }
  return { ...merged, ...platform };
}

/** Variables that the platform sets. Sandboxes that are processes run no image, so the environment reads its datasource itself. */
export function platformVariables({ datasource }: { readonly datasource: string }): Variables {
  return datasource === "" ? {} : { AENV_DATASOURCE: datasource };
}

export function isSameVariables(one: Variables, other: Variables): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}
