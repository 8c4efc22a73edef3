import { PlatformError } from "@aenv/contract";
import type { Caller } from "./caller.ts";

const SCOPE = /^[a-z0-9-]*\*?$/;

/** Names of environments that a token is good for: `tau2`, or `shop-*` for all that begin so. None means all. */
export function parseScopes(scopes: readonly string[]): readonly string[] {
  const wrong = scopes.find((scope) => scope === "" || !SCOPE.test(scope));
  if (wrong === undefined) return scopes;
  throw new PlatformError("request.invalid", `scope is '${wrong}'; give an environment's name, or the beginning of names and '*'`);
}

export function isInScope(caller: Caller, environmentName: string): boolean {
  const { scopes = [] } = caller;
  if (scopes.length === 0) return true;
  return scopes.some((scope) => (scope.endsWith("*") ? environmentName.startsWith(scope.slice(0, -1)) : environmentName === scope));
}
