import { type Identity, identity, type NewTokenRecord, newTokenRecord, type Role, type TokenRecord, tokenRecord } from "@aenv/contract";
import * as z from "zod";
import { withQuery } from "../http/json-client.ts";
import { readAnswer } from "../http/read-answer.ts";
import { ControlClient, type ControlClientOptions, type RequestOptions } from "./control-client.ts";

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
    this.#control = new ControlClient(controlUrl, { notFound: "access.token_not_found" }, options);
  }

  /** The token's secret is only in this response; it cannot be read later. */
  async create(token: NewToken, options: RequestOptions = {}): Promise<NewTokenRecord> {
    const { maxInstances, expiresAt, ...rest } = token;
    const body = {
      ...rest,
      ...(expiresAt && { expiresAt: expiresAt.toISOString() }),
      ...(maxInstances && { maxInstanceCount: maxInstances }),
    };
    const data = await this.#control.send({ ...options, method: "POST", path: "/token", doing: "create a token", body });
    return readAnswer(newTokenRecord, data, "the new token");
  }

  async list(filter: { readonly owner?: string } = {}, options: RequestOptions = {}): Promise<TokenRecord[]> {
    const data = await this.#control.send({ ...options, method: "GET", path: withQuery("/token", filter), doing: "list tokens" });
    return readAnswer(z.array(tokenRecord), data, "the list of tokens");
  }

  /** The token is rejected from now on. */
  async revoke(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#control.send({ ...options, method: "DELETE", path: `/token/${encodeURIComponent(id)}`, doing: `revoke token '${id}'` });
  }

  /** Owner and roles of the token in use. */
  async whoAmI(options: RequestOptions = {}): Promise<Identity> {
    const data = await this.#control.send({ ...options, method: "GET", path: "/whoami", doing: "look up this token's owner" });
    return readAnswer(identity, data, "the answer about this token");
  }
}
