import type { Caller, Delegates, OwnUrls } from "@aenv/server/trainer-services";

/** Addresses and token for the SDK; the token is valid until this is disposed. */
export interface CallerAccess extends OwnUrls, Disposable {
  readonly apiKey: string;
  /** What the server reads of an environment in one answer. */
  readonly maxAnswerBytes: number;
  readonly maxAnswerValues: number;
}

/**
 * Environments are not trusted, and many may answer at the same time. An answer takes several times its size while it is parsed. The longest
 * honest ones are lists of tasks, tools' schemas and images in results.
 */
const limits = { maxAnswerBytes: 16 * 1024 ** 2, maxAnswerValues: 300_000 } as const;

/** This server's own ports, used for a caller: what the server does for a caller passes the same checks as the caller's requests. */
export class Loopback {
  readonly #delegates: Delegates;
  readonly #urls: () => OwnUrls;

  /** `urls` is called when both ports are open. */
  constructor(delegates: Delegates, urls: () => OwnUrls) {
    this.#delegates = delegates;
    this.#urls = urls;
  }

  /**
   * @example
   * using access = loopback.as(caller);
   * await using env = await Environment.create("shop@1.0.0", access);
   */
  as(caller: Caller): CallerAccess {
    const delegate = this.#delegates.grant(caller);
    return { ...this.#urls(), ...limits, apiKey: delegate.token, [Symbol.dispose]: () => delegate[Symbol.dispose]() };
  }
}
