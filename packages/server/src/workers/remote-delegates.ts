import type { Caller, FindDelegate } from "../access/access.ts";
import { DELEGATE } from "../access/delegates.ts";
import type { Channel } from "./channel.ts";
import type { DelegateAnswer } from "./messages.ts";

const MAX_CACHED = 10_000;

/** The tokens by which the server acts for callers, as a worker knows them. The server tells when one ends. */
export class RemoteDelegates implements FindDelegate {
  readonly #channel: Channel;
  readonly #known = new Map<string, Caller>();
  /** Incremented when tokens end, to detect that an answer is older. */
  #ends = 0;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  find(token: string): Caller | null | Promise<Caller | null> {
    return token.startsWith(DELEGATE) ? (this.#known.get(token) ?? this.#ask(token)) : null;
  }

  end(token: string): void {
    this.#ends++;
    this.#known.delete(token);
  }

  async #ask(token: string): Promise<Caller | null> {
    const ends = this.#ends;
    const caller = await this.#channel.ask<DelegateAnswer>({ what: "delegate", token });
    if (caller === null || ends !== this.#ends) return caller;
    if (this.#known.size >= MAX_CACHED) this.#known.clear();
    this.#known.set(token, caller);
    return caller;
  }
}
