import type { Server } from "node:net";

/** Counts the connections of a worker for its server, which divides those of the port. */
export class ConnectionCount {
  readonly #server: Server;
  readonly #send: (open: number, applied: number) => void;
  #sent = 0;
  /** How many limits were applied. */
  #applied = 0;

  constructor(server: Server, send: (open: number, applied: number) => void) {
    this.#server = server;
    this.#send = send;
  }

  limit(limit: number): void {
    this.#server.maxConnections = limit;
    this.#applied++;
    this.#report(true);
  }

  reportChange(): void {
    this.#report(false);
  }

  #report(isAsked: boolean): void {
    // Read now: a limit that is applied before the count is known does not limit what was counted.
    const applied = this.#applied;
    this.#server.getConnections((error, open) => {
      if (error !== null || (!isAsked && open === this.#sent)) return;
      this.#sent = open;
      this.#send(open, applied);
    });
  }
}
