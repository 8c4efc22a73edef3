import type { InitConnection } from "./connection.ts";

const CONNECT_TIMEOUT_MS = 10_000;

/** One connection to an init for all requests of this process, opened again if it was lost. */
export class SharedConnection {
  readonly #open: (signal: AbortSignal) => Promise<InitConnection>;
  #connection: Promise<InitConnection> | undefined;

  constructor(open: (signal: AbortSignal) => Promise<InitConnection>) {
    this.#open = open;
  }

  get(): Promise<InitConnection> {
    if (this.#connection === undefined) this.#set(this.#open(AbortSignal.timeout(CONNECT_TIMEOUT_MS)));
    return this.#connection as Promise<InitConnection>;
  }

  /** Uses a connection that exists already. */
  use(connection: InitConnection): void {
    this.#set(Promise.resolve(connection));
  }

  /** A later `get` opens a new one. */
  close(): void {
    void this.#connection?.then((connection) => connection.close()).catch(() => undefined);
    this.#connection = undefined;
  }

  #set(opening: Promise<InitConnection>): void {
    this.#connection = opening;
    const forget = () => {
      if (this.#connection === opening) this.#connection = undefined;
    };
    opening.then((connection) => void connection.closed.then(forget), forget);
  }
}
