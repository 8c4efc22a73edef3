import { randomBytes } from "node:crypto";
import type { Caller } from "./caller.ts";

/** How these tokens begin. */
export const DELEGATE = "aenv-delegate_";

/** A token by which this server acts for a caller; `dispose` makes it invalid. */
export interface Delegate extends Disposable {
  readonly token: string;
}

/**
 * Tokens by which this server calls its own API for a caller, so that roles, scopes and quotas apply as to the caller's own requests.
 * They are kept in the memory of this process only: no other server accepts them, and a restart ends them.
 */
export class Delegates {
  readonly #callers = new Map<string, Caller>();
  readonly #onEnd: (token: string) => void;

  /** `onEnd` is told every token that is not valid any more. */
  constructor(onEnd: (token: string) => void = () => {}) {
    this.#onEnd = onEnd;
  }

  grant(caller: Caller): Delegate {
    const token = `${DELEGATE}${randomBytes(32).toString("base64url")}`;
    this.#callers.set(token, caller);
    return {
      token,
      [Symbol.dispose]: () => {
        if (this.#callers.delete(token)) this.#onEnd(token);
      },
    };
  }

  find(token: string): Caller | null {
    return this.#callers.get(token) ?? null;
  }
}
