import { isObject } from "@aenv/contract";
import { ValidationError } from "../errors/errors.ts";
import { ControlClient, type ControlClientOptions } from "./control-client.ts";
import type { RequestOptions } from "./scheduler-client.ts";

/** A role of a token. */
export type Role = "admin" | "publisher" | "trainer" | "agent";

export interface NewToken {
  readonly owner: string;
  /** Publisher and trainer if absent. */
  readonly roles?: readonly Role[];
  readonly note?: string;
  /** Environments that the token may use, by name or by prefix such as `shop-*`; all if absent. */
  readonly scopes?: readonly string[];
  /** The token never expires if absent. */
  readonly expiresAt?: Date;
  /** Limit of the owner's live instances; the server's default if absent. */
  readonly maxInstances?: number;
}

/** A token without its secret. */
export interface TokenInfo {
  readonly id: string;
  readonly owner: string;
  readonly roles: readonly Role[];
  readonly note: string;
  readonly scopes: readonly string[];
  /** Limit of the owner's live instances; null for the server's default. */
  readonly maxInstanceCount: number | null;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly lastUsedAt: string | null;
}

export interface Identity {
  readonly owner: string;
  readonly roles: readonly Role[];
  /** Null if the server requires no tokens. */
  readonly token: string | null;
}

/**
 * Creates, lists and revokes tokens of a platform. Requires the role admin.
 *
 * @example
 * const { token } = await new TokenClient("http://localhost:8080").create({ owner: "ada", roles: ["trainer"] });
 */
export class TokenClient {
  readonly #control: ControlClient;

  constructor(controlUrl: string, options: ControlClientOptions = {}) {
    this.#control = new ControlClient(controlUrl, options);
  }

  /** The token's secret is only in this response; it cannot be read later. */
  async create(token: NewToken, options: RequestOptions = {}): Promise<TokenInfo & { readonly token: string }> {
    const { maxInstances, expiresAt, ...rest } = token;
    const body = {
      ...rest,
      ...(expiresAt && { expiresAt: expiresAt.toISOString() }),
      ...(maxInstances && { maxInstanceCount: maxInstances }),
    };
    const data = await this.#send("POST", "/token", "create a token", options, body);
    if (!isObject(data) || typeof data.token !== "string") throw unexpected(data);
    return data as unknown as TokenInfo & { readonly token: string };
  }

  async list(filter: { readonly owner?: string } = {}, options: RequestOptions = {}): Promise<TokenInfo[]> {
    const query = filter.owner === undefined ? "" : `?owner=${encodeURIComponent(filter.owner)}`;
    const data = await this.#send("GET", `/token${query}`, "list tokens", options);
    if (!Array.isArray(data)) throw unexpected(data);
    return data as TokenInfo[];
  }

  /** The token is rejected from now on. */
  async revoke(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#send("DELETE", `/token/${encodeURIComponent(id)}`, `revoke token '${id}'`, options);
  }

  /** Owner and roles of the token in use. */
  async whoAmI(options: RequestOptions = {}): Promise<Identity> {
    const data = await this.#send("GET", "/whoami", "look up this token's owner", options);
    if (!isObject(data) || typeof data.owner !== "string") throw unexpected(data);
    return data as unknown as Identity;
  }

  #send(method: string, path: string, doing: string, options: RequestOptions, body?: unknown): Promise<unknown> {
    const rule = method === "POST" ? "once" : "idempotent";
    return this.#control.send({ ...options, method, path, doing, rule, body, notFound: "access.token_not_found" });
  }
}

function unexpected(data: unknown): ValidationError {
  return new ValidationError(`the server answered in an unexpected shape: ${(JSON.stringify(data) ?? "nothing").slice(0, 200)}`);
}
