import { PlatformError } from "@aenv/contract";
import type { Caller } from "./caller.ts";

const SCOPE = /^[a-z0-9-]*\*?$/;

/** The environments that a token is valid for: names such as `tau2`, or prefixes such as `shop-*`. Empty means all. */
export function parseScopes(scopes: readonly string[]): readonly string[] {
  const wrong = scopes.find((scope) => scope === "" || !SCOPE.test(scope));
  if (wrong === undefined) return scopes;
  throw new PlatformError("request.invalid", `scope is '${wrong}'; write an environment's name, or a prefix and '*'`);
}

export function isInScope(caller: Caller, environmentName: string): boolean {
  const { scopes = [] } = caller;
  if (scopes.length === 0) return true;
  return scopes.some((scope) => (scope.endsWith("*") ? environmentName.startsWith(scope.slice(0, -1)) : environmentName === scope));
}
