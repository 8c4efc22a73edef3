import { randomUUID } from "node:crypto";
import type { Caller, Collection, EnvironmentVersion } from "@aenv/server/trainer-services";
import { hasExpired, IDLE_MS, idOfEpisode, type OpenEnvRow } from "./row.ts";
import { OpenEnvSession, type OpenEnvSessionOptions } from "./session.ts";
import { SharedState } from "./shared-state.ts";

export interface RegistryOptions extends Pick<OpenEnvSessionOptions, "sessions" | "tasks"> {
  readonly rows: Collection<OpenEnvRow>;
  /** The most sessions of one owner. */
  readonly limitOf: (caller: Caller) => number;
  readonly now: () => Date;
  readonly monotonicMs: () => number;
}

/** The owner has as many sessions as it may have. */
export class CapacityError extends Error {
  override readonly name = "CapacityError";
  readonly active: number;
  readonly max: number;

  constructor(active: number, max: number) {
    super(`Server at capacity: ${active}/${max} sessions active.`);
    this.active = active;
    this.max = max;
  }
}

interface Entry {
  readonly session: OpenEnvSession;
  /** True if a WebSocket of this server uses it. */
  isAttached: boolean;
  usedAt: number;
}

/**
 * The sessions that this server has opened or used. Those that plain HTTP requests can name are in the store too, so every server finds
 * them; the others belong to one WebSocket or one request.
 */
export class Registry {
  readonly #options: RegistryOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /** A session that only this server knows. Throws `CapacityError` if the caller has too many. */
  async open(version: EnvironmentVersion, caller: Caller, { isAttached }: { readonly isAttached: boolean }): Promise<OpenEnvSession> {
    const stored = await this.#options.rows.count("owner", caller.owner);
    const active = stored + this.#unsharedOf(caller);
    const max = this.#options.limitOf(caller);
    if (active >= max) throw new CapacityError(active, max);
    return this.#add(randomUUID(), version, caller, { isStored: false, isAttached });
  }

  /** A session that every server knows. Throws `CapacityError` if the caller has too many. */
  async openShared(version: EnvironmentVersion, caller: Caller): Promise<OpenEnvSession> {
    return (await this.#create(randomUUID(), version, caller)) as OpenEnvSession;
  }

  /** The session of a named episode, and whether it is new. */
  async openEpisode(
    version: EnvironmentVersion,
    caller: Caller,
    episodeId: string,
  ): Promise<{ readonly session: OpenEnvSession; readonly isNew: boolean }> {
    const id = idOfEpisode(caller.owner, refOf(version), episodeId);
    for (;;) {
      const known = await this.find(id, version, caller);
      if (known !== null) return { session: known, isNew: false };
      const made = await this.#create(id, version, caller);
      if (made !== null) return { session: made, isNew: true };
    }
  }

  /** A session for one piece of work. */
  async once<T>(version: EnvironmentVersion, caller: Caller, work: (session: OpenEnvSession) => Promise<T>): Promise<T> {
    const session = await this.open(version, caller, { isAttached: false });
    try {
      return await work(session);
    } finally {
      await this.end(session);
    }
  }

  /** A session of the caller's; null if there is none with this id. */
  async find(id: string, version: EnvironmentVersion, caller: Caller): Promise<OpenEnvSession | null> {
    const entry = this.#entries.get(id);
    const isShared = entry?.session.isShared ?? true;
    const found = isShared ? await this.#findRow(id) : { owner: entry?.session.caller.owner, ref: entry?.session.ref };
    if (found === null) this.#forget(id);
    if (found?.owner !== caller.owner || found.ref !== refOf(version)) return null;
    const known = this.#entries.get(id);
    if (known === undefined) return this.#add(id, version, caller, { isStored: true, isAttached: false });
    known.usedAt = this.#options.monotonicMs();
    known.session.caller = caller;
    return known.session;
  }

  findEpisode(version: EnvironmentVersion, caller: Caller, episodeId: string): Promise<OpenEnvSession | null> {
    return this.find(idOfEpisode(caller.owner, refOf(version), episodeId), version, caller);
  }

  /** False if another WebSocket of this server uses it already. */
  attach(session: OpenEnvSession): boolean {
    const entry = this.#entries.get(session.id);
    if (entry === undefined || entry.isAttached) return false;
    entry.isAttached = true;
    return true;
  }

  detach(session: OpenEnvSession): void {
    const entry = this.#entries.get(session.id);
    if (entry === undefined) return;
    entry.isAttached = false;
    entry.usedAt = this.#options.monotonicMs();
  }

  isAttached(session: OpenEnvSession): boolean {
    return this.#entries.get(session.id)?.isAttached ?? false;
  }

  /** Ends a session unless it has an episode. */
  async endUnused(session: OpenEnvSession): Promise<void> {
    if (await session.isUnused()) await this.end(session);
  }

  async end(session: OpenEnvSession): Promise<void> {
    this.#entries.delete(session.id);
    await session.close();
  }

  /** Ends sessions that nobody uses. The instance of one that another server has used ends by its time to live. */
  async sweep(): Promise<void> {
    const now = this.#options.monotonicMs();
    const idle = [...this.#entries.values()].filter(({ isAttached, usedAt }) => !isAttached && now - usedAt > IDLE_MS);
    for (const { session } of idle) {
      if (session.isShared && (await this.#findRow(session.id)) !== null) this.#forget(session.id);
      else await this.end(session);
    }
    const { rows } = this.#options;
    for await (const row of rows.each()) if (hasExpired(row.value, this.#options.now())) await rows.remove(row.key, row.rev);
  }

  /** Ends the sessions that only this server knows, and leaves the others to the next server. */
  async close(): Promise<void> {
    const sessions = [...this.#entries.values()].map(({ session }) => session);
    await Promise.allSettled(sessions.map((session) => (session.isShared ? this.#forget(session.id) : this.end(session))));
  }

  /** Null if the id exists. */
  async #create(id: string, version: EnvironmentVersion, caller: Caller): Promise<OpenEnvSession | null> {
    const max = this.#options.limitOf(caller);
    const left = max - this.#unsharedOf(caller);
    const shared = this.#sharedState(id, version, caller, false);
    const limit = { index: "owner", value: caller.owner, max: left };
    const result = await shared.store({ episodes: 0, playing: null }, { limit });
    if (result === "exists") return null;
    if (result === "limit") throw new CapacityError(max, max);
    return this.#add(id, version, caller, { isStored: true, isAttached: false });
  }

  #add(
    id: string,
    version: EnvironmentVersion,
    caller: Caller,
    { isStored, isAttached }: { readonly isStored: boolean; readonly isAttached: boolean },
  ): OpenEnvSession {
    // Another request may have found the row that this one has just stored.
    const known = this.#entries.get(id);
    if (known !== undefined) return known.session;
    const { sessions, tasks, monotonicMs } = this.#options;
    const session = new OpenEnvSession({ sessions, tasks, version, caller, shared: this.#sharedState(id, version, caller, isStored) });
    this.#entries.set(id, { session, isAttached, usedAt: monotonicMs() });
    return session;
  }

  #sharedState(id: string, version: EnvironmentVersion, { owner }: Caller, isStored: boolean): SharedState {
    const { rows, now } = this.#options;
    return new SharedState({ rows, now, id, owner, ref: refOf(version), isStored });
  }

  #unsharedOf({ owner }: Caller): number {
    return [...this.#entries.values()].filter(({ session }) => !session.isShared && session.caller.owner === owner).length;
  }

  async #findRow(id: string): Promise<OpenEnvRow | null> {
    const { rows, now } = this.#options;
    const row = await rows.find(id);
    if (row === null || !hasExpired(row.value, now())) return row?.value ?? null;
    await rows.remove(id, row.rev);
    return null;
  }

  #forget(id: string): void {
    this.#entries.get(id)?.session.leave();
    this.#entries.delete(id);
  }
}

function refOf({ name, version }: EnvironmentVersion): string {
  return `${name}@${version}`;
}
