import type { Ends } from "./subnet.ts";

/** The interface of one sandbox: its name at this machine's end, and the addresses of both ends. */
export interface Cable {
  readonly name: string;
  readonly ends: Ends;
}

/** What connects sandboxes to this machine. An engine makes them of what its sandboxes can have. */
export interface Cables {
  /**
   * Whether this machine's ends have their addresses as soon as they are created. Otherwise that is so when a sandbox is connected, and the
   * engine then calls `SandboxNetwork.serve`.
   */
  readonly haveAddresses: boolean;
  /** `eth0` or a similar interface of the sandbox, with a route through this machine's end. */
  create(cables: readonly Cable[]): Promise<void>;
  /** Idempotent. */
  remove(name: string): Promise<void>;
  /** The names of all that exist, also of other homes. */
  list(): Promise<Iterable<string>>;
}
