import { isLoopback, PlatformError, type Role, roles } from "@aenv/contract";
import type { Caller } from "./caller.ts";
import { Delegates } from "./delegates.ts";
import type { Tokens } from "./tokens.ts";

export type { Caller } from "./caller.ts";

/** The caller if access is off: all rights. */
const LOCAL_CALLER: Caller = { owner: "default", roles: new Set(roles), tokenId: null, maxInstances: null };

/** Finds the caller for whom this server acts by a token; a worker asks its server. */
export interface FindDelegate {
  find(token: string): Caller | null | Promise<Caller | null>;
}

/** Authentication and authorization: who the caller is, and which roles it needs. */
export class Access {
  readonly tokens: Tokens;
  readonly isOn: boolean;
  readonly #delegates: FindDelegate;

  constructor(tokens: Tokens, isOn: boolean, delegates: FindDelegate = new Delegates()) {
    this.tokens = tokens;
    this.isOn = isOn;
    this.#delegates = delegates;
  }

  async identify(authorization: string | undefined): Promise<Caller> {
    if (!this.isOn) return LOCAL_CALLER;
    if (authorization === undefined) throw unauthenticated("Missing Authorization header");
    const match = /^bearer +(\S+)$/i.exec(authorization.trim());
    if (match === null) throw unauthenticated("Authorization header format should be Bearer <token>");
    const token = match[1] as string;
    const delegator = await this.#delegates.find(token);
    if (delegator !== null) return this.stillValid(delegator);
    const caller = await this.tokens.verify(token);
    if (caller === null) throw unauthenticated("Invalid token");
    return caller;
  }

  /** The caller itself. What this server does for a caller ends when the caller's token is revoked or expires: this throws then. */
  async stillValid(caller: Caller): Promise<Caller> {
    if (!this.isOn || caller.tokenId === null || (await this.tokens.isValid(caller.tokenId))) return caller;
    throw unauthenticated(`the token ${caller.tokenId} of '${caller.owner}' was revoked or has expired`);
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
