import { PlatformError } from "@aenv/contract";
import type { Target, Targets } from "../instances/targets.ts";
import type { Collection } from "../stores/collection.ts";
import type { ServiceRow } from "./row.ts";
import { notFound } from "./services.ts";

/** How long a change of a service may go unnoticed at the gateway. */
const BELIEVE_MS = 500;
const REMEMBERED = 100_000;

type Ready = Extract<Target, { kind: "ready" }>;

/** Which replica a call to a service goes to. */
export class ServiceTargets {
  readonly #rows: Collection<ServiceRow>;
  readonly #targets: Targets;
  readonly #known = new Map<string, { readonly row: ServiceRow; readonly at: number }>();
  /** The replica that has opened an MCP session, by the session's id. */
  readonly #sessions = new Map<string, string>();
  #turn = 0;

  constructor(rows: Collection<ServiceRow>, targets: Targets) {
    this.#rows = rows;
    this.#targets = targets;
  }

  async get(id: string): Promise<ServiceRow> {
    const known = this.#known.get(id);
    return known !== undefined && performance.now() - known.at < BELIEVE_MS ? known.row : this.#read(id);
  }

  /** A replica that runs: the one that knows the session, else each in its turn. */
  async pick(row: ServiceRow, sessionId: string | undefined): Promise<Ready> {
    // If none runs of those that memory knows, others may have taken their places.
    const ready = (await this.#pick(row, sessionId)) ?? (await this.#pick(await this.#read(row.id), sessionId));
    if (ready !== null) return ready;
    throw new PlatformError("service.unavailable", `service '${row.id}' has no replica that runs; try again in a moment`);
  }

  /** A replica has opened a session: what comes later with it is for this one. */
  noteSession(sessionId: string, instanceId: string): void {
    keep(this.#sessions, sessionId, instanceId);
  }

  async #read(id: string): Promise<ServiceRow> {
    const row = (await this.#rows.find(id))?.value ?? null;
    this.#known.delete(id);
    if (row === null || row.leaving !== null) throw notFound(id);
    keep(this.#known, id, { row, at: performance.now() });
    return row;
  }

  async #pick({ slots }: ServiceRow, sessionId: string | undefined): Promise<Ready | null> {
    const ids = slots.map(({ instanceId }) => instanceId);
    const at = ids.indexOf(this.#sessions.get(sessionId ?? "") ?? "");
    const first = at >= 0 ? at : this.#turn++ % Math.max(1, ids.length);
    const inTurn = [...ids.slice(first), ...ids.slice(0, first)];
    for (const id of inTurn) {
      const target = this.#targets.peek(id);
      if (target?.kind === "ready") return target;
    }
    for (const id of inTurn) {
      const target = await this.#targets.find(id);
      if (target.kind === "ready") return target;
    }
    return null;
  }
}

function keep<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= REMEMBERED) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
