import { createHash, randomBytes } from "node:crypto";
import { PlatformError } from "@aenv/contract";
import { Collection } from "../../stores/collection.ts";
import type { Store } from "../../stores/store.ts";

/** What a ticket is good for. */
export interface TicketRow {
  readonly direction: "upload" | "download";
  readonly name: string;
  readonly version: string;
  readonly owner: string;
  readonly expiresAt: string;
}

export interface Ticket {
  /** 160 random bits, safe in a path: who has it may use it, once. */
  readonly ticket: string;
  readonly expiresAt: string;
}

const LIFE_MS = 15 * 60_000;
const MAX_OPEN = 200;

/**
 * One-time permissions to send or fetch an archive without a token, for the original's client: it asks for a URL and
 * then uses that URL with nothing else. The store holds only a ticket's hash.
 */
export class Tickets {
  readonly #rows: Collection<TicketRow>;
  readonly #now: () => Date;

  constructor(store: Store, now: () => Date) {
    this.#rows = new Collection<TicketRow>(store, "ticket", ({ owner }) => ({ owner }));
    this.#now = now;
  }

  async issue(good: Omit<TicketRow, "expiresAt">): Promise<Ticket> {
    const ticket = randomBytes(20).toString("hex");
    const row = { ...good, expiresAt: new Date(this.#now().getTime() + LIFE_MS).toISOString() };
    const limit = { index: "owner", value: good.owner, max: MAX_OPEN };
    for (const isLast of [false, true]) {
      const inserted = await this.#rows.insert(keyOf(ticket), row, { limit });
      if (inserted === "inserted") break;
      if (isLast) {
        const message = `'${good.owner}' has ${MAX_OPEN} unused upload and download links; use them or wait until they expire`;
        throw new PlatformError("quota.exceeded", message, { details: { owner: good.owner, retryAfterSeconds: 60 } });
      }
      await this.collect();
    }
    return { ticket, expiresAt: row.expiresAt };
  }

  /** Takes a ticket: of many who come with the same one, exactly one is let in. */
  async redeem(ticket: string, direction: TicketRow["direction"]): Promise<TicketRow> {
    const row = await this.#rows.find(keyOf(ticket));
    const isGood = row !== null && row.value.direction === direction && row.value.expiresAt > this.#now().toISOString();
    if (isGood && (await this.#rows.remove(row.key, row.rev))) return row.value;
    throw new PlatformError("ticket.not_found", `this ${direction} link is unknown, was used, or is too old; ask for a new one`);
  }

  async collect(): Promise<void> {
    const now = this.#now().toISOString();
    for await (const { key, rev, value } of this.#rows.each()) if (value.expiresAt <= now) await this.#rows.remove(key, rev);
  }
}

function keyOf(ticket: string): string {
  return createHash("sha256").update(ticket).digest("hex");
}
