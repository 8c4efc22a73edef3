import type { Caller } from "../access/access.ts";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { OpenEnvSession, type OpenEnvSessionOptions } from "./session.ts";

export interface RegistryOptions extends Pick<OpenEnvSessionOptions, "sessions" | "tasks"> {
  /** The most sessions of one owner. */
  readonly limitOf: (caller: Caller) => number;
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

/** Sessions without a connection end when they are not used for this long. */
const IDLE_MS = 3_600_000;

interface Entry {
  readonly session: OpenEnvSession;
  /** True if a WebSocket uses it. */
  isAttached: boolean;
  usedAt: number;
}

/** The open sessions of this server. A session lives in the memory of the server that opened it; its instances are in the store. */
export class Registry {
  readonly #options: RegistryOptions;
  readonly #entries = new Map<string, Entry>();
  /** Sessions that plain HTTP requests name by their episode. */
  readonly #byEpisode = new Map<string, OpenEnvSession>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /** Throws `CapacityError` if the caller has too many. */
  open(version: EnvironmentVersion, caller: Caller, { isAttached }: { readonly isAttached: boolean }): OpenEnvSession {
    const { sessions, tasks, limitOf, monotonicMs } = this.#options;
    const active = [...this.#entries.values()].filter(({ session }) => session.caller.owner === caller.owner).length;
    const max = limitOf(caller);
    if (active >= max) throw new CapacityError(active, max);
    const session = new OpenEnvSession({ sessions, tasks, version, caller });
    this.#entries.set(session.id, { session, isAttached, usedAt: monotonicMs() });
    return session;
  }

  /** A session for one piece of work. */
  async once<T>(version: EnvironmentVersion, caller: Caller, work: (session: OpenEnvSession) => Promise<T>): Promise<T> {
    const session = this.open(version, caller, { isAttached: false });
    try {
      return await work(session);
    } finally {
      await this.end(session);
    }
  }

  /** A session of the caller's; null if there is none with this id. */
  find(id: string, ref: string, caller: Caller): OpenEnvSession | null {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.session.caller.owner !== caller.owner || entry.session.ref !== ref) return null;
    entry.usedAt = this.#options.monotonicMs();
    return entry.session;
  }

  /** False if another WebSocket uses it already. */
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

  async end(session: OpenEnvSession): Promise<void> {
    this.#entries.delete(session.id);
    for (const [key, one] of this.#byEpisode) if (one === session) this.#byEpisode.delete(key);
    await session.close();
  }

  /** Keeps a session for later HTTP requests with the same `episode_id`. */
  nameEpisode(session: OpenEnvSession, episodeId: string): void {
    this.#byEpisode.set(episodeKey(session.ref, session.caller, episodeId), session);
  }

  findEpisode(ref: string, caller: Caller, episodeId: string): OpenEnvSession | null {
    const session = this.#byEpisode.get(episodeKey(ref, caller, episodeId));
    return session === undefined ? null : this.find(session.id, ref, caller);
  }

  /** Ends sessions that nobody uses. */
  async sweep(): Promise<void> {
    const now = this.#options.monotonicMs();
    const idle = [...this.#entries.values()].filter(({ isAttached, usedAt }) => !isAttached && now - usedAt > IDLE_MS);
    for (const { session } of idle) await this.end(session);
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#entries.values()].map(({ session }) => this.end(session)));
  }
}

function episodeKey(ref: string, { owner }: Caller, episodeId: string): string {
  return `${owner}\n${ref}\n${episodeId}`;
}
