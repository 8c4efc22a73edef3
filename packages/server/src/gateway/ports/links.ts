import { createHash, randomBytes } from "node:crypto";
import { PlatformError } from "@aenv/contract";
import type { Container } from "../../instances/containers.ts";
import type { InstanceRow } from "../../instances/row.ts";
import { Collection } from "../../stores/collection.ts";
import type { Store } from "../../stores/store.ts";

/** What a presigned link opens: one port of one sandbox of an instance. */
export interface PortLinkRow {
  readonly instanceId: string;
  /** An id may be reused after its instance has ended; the time of creation distinguishes them. */
  readonly instanceCreatedAt: string;
  readonly port: number;
  /** Undefined: the sandbox of the task if there is one when the link is used, as for commands. */
  readonly container?: Container;
  readonly expiresAt: string;
}

/** A link that is valid now. */
export interface OpenPortLink extends PortLinkRow {
  readonly leftMs: number;
}

export interface PortLink {
  /** 128 random bits, safe in a path and as a label of a host name, which is the same in upper and lower case. Knowing it permits use of the port until the link expires. */
  readonly token: string;
  readonly expiresAt: string;
}

/** Links of one instance that are valid at the same time. */
const MAX_OPEN = 1_000;
const TOKEN = /^[\w-]{32}$/;

/** Presigned links to ports inside sandboxes. The store holds only a token's hash, and every server that shares the store accepts the link. */
export class PortLinks {
  readonly #rows: Collection<PortLinkRow>;
  readonly #now: () => Date;

  constructor(store: Store, now: () => Date) {
    this.#rows = new Collection<PortLinkRow>(store, "port-link", (row) => ({ instance: indexOf(row) }));
    this.#now = now;
  }

  async issue(
    instance: Pick<InstanceRow, "id" | "createdAt">,
    { port, container }: Pick<PortLinkRow, "port" | "container">,
    lifeMs: number,
  ): Promise<PortLink> {
    const token = randomBytes(16).toString("hex");
    const expiresAt = new Date(this.#now().getTime() + lifeMs).toISOString();
    const row: PortLinkRow = {
      instanceId: instance.id,
      instanceCreatedAt: instance.createdAt,
      port,
      ...(container !== undefined && { container }),
      expiresAt,
    };
    const limit = { index: "instance", value: indexOf(row), max: MAX_OPEN };
    for (const isLast of [false, true]) {
      const inserted = await this.#rows.insert(keyOf(token), row, { limit });
      if (inserted === "inserted") break;
      if (isLast) {
        const message = `instance '${instance.id}' has ${MAX_OPEN} presigned links that are still valid; use one of them or wait until some expire`;
        throw new PlatformError("quota.exceeded", message, { details: { retryAfterSeconds: 60 } });
      }
      await this.#collect({ index: "instance", value: indexOf(row) });
    }
    return { token, expiresAt };
  }

  /** What the token opens; null if it is unknown or has expired. */
  async find(token: string): Promise<OpenPortLink | null> {
    if (!TOKEN.test(token)) return null;
    const row = (await this.#rows.find(keyOf(token)))?.value ?? null;
    const leftMs = row === null ? 0 : Date.parse(row.expiresAt) - this.#now().getTime();
    return row === null || leftMs <= 0 ? null : { ...row, leftMs };
  }

  /** Deletes expired links. */
  collect(): Promise<void> {
    return this.#collect();
  }

  async #collect(where?: { readonly index: string; readonly value: string }): Promise<void> {
    const now = this.#now().toISOString();
    for await (const { key, rev, value } of this.#rows.each(where)) if (value.expiresAt <= now) await this.#rows.remove(key, rev);
  }
}

function indexOf({ instanceId, instanceCreatedAt }: PortLinkRow): string {
  return `${instanceId}\n${instanceCreatedAt}`;
}

function keyOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
