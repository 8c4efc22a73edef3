import { type Identity, identity, type NewTokenRecord, newTokenRecord, type Role, type TokenRecord, tokenRecord } from "@aenv/contract";
import * as z from "zod";
import { readAnswer } from "../http/read-answer.ts";
import { ControlClient, type ControlClientOptions } from "./control-client.ts";
import type { RequestOptions } from "./scheduler-client.ts";

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
  async create(token: NewToken, options: RequestOptions = {}): Promise<NewTokenRecord> {
    const { maxInstances, expiresAt, ...rest } = token;
    const body = {
      ...rest,
      ...(expiresAt && { expiresAt: expiresAt.toISOString() }),
      ...(maxInstances && { maxInstanceCount: maxInstances }),
    };
    return readAnswer(newTokenRecord, await this.#send("POST", "/token", "create a token", options, body), "the new token");
  }

  async list(filter: { readonly owner?: string } = {}, options: RequestOptions = {}): Promise<TokenRecord[]> {
    const query = filter.owner === undefined ? "" : `?owner=${encodeURIComponent(filter.owner)}`;
    return readAnswer(z.array(tokenRecord), await this.#send("GET", `/token${query}`, "list tokens", options), "the list of tokens");
  }

  /** The token is rejected from now on. */
  async revoke(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#send("DELETE", `/token/${encodeURIComponent(id)}`, `revoke token '${id}'`, options);
  }

  /** Owner and roles of the token in use. */
  async whoAmI(options: RequestOptions = {}): Promise<Identity> {
    return readAnswer(identity, await this.#send("GET", "/whoami", "look up this token's owner", options), "the answer about this token");
  }

  #send(method: string, path: string, doing: string, options: RequestOptions, body?: unknown): Promise<unknown> {
    const rule = method === "POST" ? "once" : "idempotent";
    return this.#control.send({ ...options, method, path, doing, rule, body, notFound: "access.token_not_found" });
  }
}
