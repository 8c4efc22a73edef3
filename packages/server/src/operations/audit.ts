/** The origin of an action. Owner and request id are null if there is none or it is unknown. */
export interface Actor {
  readonly owner: string | null;
  readonly requestId: string | null;
  /** The remote address of the connection: the client's or its proxy's. */
  readonly client: string | null;
}

/** Every kind of change. */
export const changes = [
  "environment.published",
  "environment.changed",
  "environment.deleted",
  "instance.created",
  "instance.deleted",
  "snapshot.created",
  "snapshot.deleted",
  "service.created",
  "service.changed",
  "service.deleted",
  "session.created",
  "session.deleted",
  "rollout.created",
  "rollout.cancelled",
  "token.created",
  "token.revoked",
  "port.opened",
  "command.started",
  "port.listened",
  "command.followed",
  "command.signalled",
  "files.read",
  "files.changed",
] as const;
/** A change. Its `subjects` are the names or ids of what was changed; never a secret. */
export type Change = (typeof changes)[number];

export type RefusalStatus = 401 | 403 | 429;

/** Every entry of the audit log. */
export type AuditEvent =
  | ({ readonly event: Change; readonly subjects: readonly string[] } & Actor)
  | ({ readonly event: "refused"; readonly port: "control" | "data"; readonly status: RefusalStatus } & Actor)
  /** The number of further refusals of a client that were not written individually. */
  | {
      readonly event: "refused.more";
      readonly port: "control" | "data";
      readonly status: RefusalStatus;
      readonly client: string | null;
      readonly count: number;
      readonly seconds: number;
    }
  | { readonly event: "server.started"; readonly version: string; readonly access: "on" | "off"; readonly host: string }
  | { readonly event: "server.stopped" };

export interface AuditOptions {
  readonly write: (event: AuditEvent) => void;
  readonly monotonicMs?: () => number;
}

type Refusal = Extract<AuditEvent, { event: "refused" }>;

interface Repeated {
  readonly first: Refusal;
  since: number;
  more: number;
}

/** In this interval one refusal of a client is written, and then the number of further ones. */
export const REPEAT_MS = 60_000;
/** Clients that are counted separately; all others are counted together, to bound log and memory. */
const MAX_CLIENTS = 1_000;

export function isRefusal(status: number): status is RefusalStatus {
  return status === 401 || status === 403 || status === 429;
}

/** Writes changes and refused requests to the audit log. */
export class Audit {
  readonly #write: (event: AuditEvent) => void;
  readonly #monotonicMs: () => number;
  readonly #repeated = new Map<string, Repeated>();

  constructor({ write, monotonicMs = () => performance.now() }: AuditOptions) {
    this.#write = write;
    this.#monotonicMs = monotonicMs;
  }

  change(event: Change, subjects: readonly string[], { owner, requestId, client }: Actor): void {
    this.#write({ event, subjects, owner, requestId, client });
  }

  started(server: { readonly version: string; readonly access: "on" | "off"; readonly host: string }): void {
    this.#write({ event: "server.started", ...server });
  }

  stopped(): void {
    this.flush(Number.POSITIVE_INFINITY);
    this.#write({ event: "server.stopped" });
  }

  refused(port: Refusal["port"], status: RefusalStatus, { owner, requestId, client }: Actor): void {
    const refusal: Refusal = { event: "refused", port, status, owner, requestId, client };
    const key = this.#keyOf(refusal);
    const known = this.#repeated.get(key);
    if (known !== undefined) {
      known.more++;
      return;
    }
    const first = key === OTHERS ? { ...refusal, client: null, owner: null } : refusal;
    this.#repeated.set(key, { first, since: this.#monotonicMs(), more: 0 });
    this.#write(refusal);
  }

  /** Writes the number of suppressed refusals of clients whose interval is over. Called periodically. */
  flush(now = this.#monotonicMs()): void {
    for (const [key, { first, since, more }] of this.#repeated) {
      if (now - since < REPEAT_MS) continue;
      this.#repeated.delete(key);
      if (more === 0) continue;
      const { port, status, client } = first;
      const seconds = Math.round((Math.min(now, this.#monotonicMs()) - since) / 1_000);
      this.#write({ event: "refused.more", port, status, client, count: more, seconds });
      // Counting continues, so that an attack is one line per interval.
      if (now !== Number.POSITIVE_INFINITY) this.#repeated.set(key, { first, since: now, more: 0 });
    }
  }

  #keyOf({ port, status, client }: Refusal): string {
    const key = `${port} ${status} ${client}`;
    return this.#repeated.has(key) || this.#repeated.size < MAX_CLIENTS ? key : OTHERS;
  }
}

const OTHERS = "others";
