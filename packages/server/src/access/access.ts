import { isLoopback, PlatformError } from "@aenv/contract";
import { type Caller, type Role, roles } from "./caller.ts";
import type { Tokens } from "./tokens.ts";

export { type Caller, type Role, roles } from "./caller.ts";

/** The caller if access is off: all rights. */
const LOCAL_CALLER: Caller = { owner: "default", roles: new Set(roles), tokenId: null, maxInstances: null };

/** Authentication and authorization: who the caller is, and which roles it needs. */
export class Access {
  readonly tokens: Tokens;
  readonly isOn: boolean;

  constructor(tokens: Tokens, isOn: boolean) {
    this.tokens = tokens;
    this.isOn = isOn;
  }

  async identify(authorization: string | undefined): Promise<Caller> {
    if (!this.isOn) return LOCAL_CALLER;
    if (authorization === undefined) throw unauthenticated("Missing Authorization header");
    const match = /^bearer +(\S+)$/i.exec(authorization.trim());
    if (match === null) throw unauthenticated("Authorization header format should be Bearer <token>");
    const caller = await this.tokens.verify(match[1] as string);
    if (caller === null) throw unauthenticated("Invalid token");
    return caller;
  }

  assertRole(caller: Caller, ...anyOf: readonly Role[]): void {
    if (caller.roles.has("admin") || anyOf.some((role) => caller.roles.has(role))) return;
    throw new PlatformError(
      "access.denied",
      `this requires the role ${anyOf.join(" or ")}; the token has ${[...caller.roles].join(", ") || "none"}`,
    );
  }
}

/** The warning for a server that is reachable from other machines without tokens; null if there is no need. */
export function exposureWarning(host: string, isOn: boolean): string | null {
  if (isOn || isLoopback(host)) return null;
  return `access is off and the server listens on ${host}: every client that can reach it has all rights; set access to 'auto' or 'on'`;
}

function unauthenticated(message: string): PlatformError {
  return new PlatformError("access.unauthenticated", message);
}
