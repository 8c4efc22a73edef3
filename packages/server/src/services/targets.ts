import { PlatformError } from "@aenv/contract";
import type { ServiceReplica } from "@aenv/sandbox";
import type { Target, Targets } from "../instances/targets.ts";
import type { Collection } from "../stores/collection.ts";
import { targetIn } from "./replica.ts";
import type { ServiceRow } from "./row.ts";
import { notFound } from "./services.ts";
import { tagOf } from "./sessions.ts";

/** How long the gateway caches a service. */
const CACHE_MS = 500;
const MAX_CACHED = 100_000;

type Ready = Extract<Target, { kind: "ready" }>;

/** Chooses the replica for a call to a service. */
export class ServiceTargets {
  readonly #rows: Collection<ServiceRow>;
  readonly #targets: Targets;
  readonly #cache = new Map<string, { readonly row: ServiceRow; readonly at: number }>();
  /** The tags of a service's replicas by row: rows are replaced, never mutated. */
  readonly #tags = new WeakMap<ServiceRow, ReadonlyMap<string, string>>();
  /** Not 0: workers that all begin with the same replica would give it most of a few calls. */
  #turn = Math.floor(Math.random() * 1_000);

  constructor(rows: Collection<ServiceRow>, targets: Targets) {
    this.#rows = rows;
    this.#targets = targets;
  }

  async get(id: string): Promise<ServiceRow> {
    const known = this.#cache.get(id);
    return known !== undefined && performance.now() - known.at < CACHE_MS ? known.row : this.#read(id);
  }

  /** A running replica, round-robin. */
  async pick(row: ServiceRow): Promise<Ready> {
    // If no cached replica runs, the row may have changed.
    const ready = (await this.#pick(row)) ?? (await this.#pick(await this.#read(row.id)));
    if (ready !== null) return ready;
    throw new PlatformError("service.unavailable", `service '${row.id}' has no running replica; try again in a moment`);
  }

  /** The replica that opened a session, if it still runs. */
  async withSession(row: ServiceRow, tag: string): Promise<Ready | null> {
    const known = this.#tagsOf(row).get(tag);
    // It may have been started after the row was cached.
    const instanceId = known ?? this.#tagsOf(await this.#read(row.id)).get(tag);
    if (instanceId === undefined) return null;
    const replica = replicasOf(await this.get(row.id)).find(({ id }) => id === instanceId);
    if (replica !== undefined) return targetIn(row, replica);
    const target = this.#targets.peek(instanceId) ?? (await this.#targets.find(instanceId));
    return target.kind === "ready" ? target : null;
  }

  #tagsOf(row: ServiceRow): ReadonlyMap<string, string> {
    let tags = this.#tags.get(row);
    if (tags === undefined) {
      const ids = [...row.slots.map(({ instanceId }) => instanceId), ...replicasOf(row).map(({ id }) => id)];
      tags = new Map(ids.map((id) => [tagOf(id), id]));
      this.#tags.set(row, tags);
    }
    return tags;
  }

  async #read(id: string): Promise<ServiceRow> {
    const row = (await this.#rows.find(id))?.value ?? null;
    this.#cache.delete(id);
    if (row === null || row.leaving !== null) throw notFound(id);
    keep(this.#cache, id, { row, at: performance.now() });
    return row;
  }

  async #pick(row: ServiceRow): Promise<Ready | null> {
    const { slots, workload } = row;
    if (workload !== undefined) {
      const replicas = replicasOf(row);
      const replica = replicas[this.#turn++ % Math.max(1, replicas.length)];
      return replica === undefined ? null : targetIn(row, replica);
    }
    const ids = slots.map(({ instanceId }) => instanceId);
    const first = this.#turn++ % Math.max(1, ids.length);
    const rotated = [...ids.slice(first), ...ids.slice(0, first)];
    // A replica that this process has not called yet is not in memory, and would never have its turn.
    const [next] = rotated;
    if (next !== undefined && this.#targets.peek(next) === null) await this.#targets.find(next).catch(() => {});
    for (const id of rotated) {
      const target = this.#targets.peek(id);
      if (target?.kind === "ready") return target;
    }
    for (const id of rotated) {
      const target = await this.#targets.find(id);
      if (target.kind === "ready") return target;
    }
    return null;
  }
}

/** Those that the engine runs. */
function replicasOf({ workload }: ServiceRow): readonly ServiceReplica[] {
  return workload?.status?.replicas ?? [];
}

function keep<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= MAX_CACHED) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
