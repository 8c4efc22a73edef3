import { PlatformError } from "@aenv/contract";
import type { Collection, InsertOptions, InsertResult, Versioned } from "@aenv/server/trainer-services";
import { IDLE_MS, type OpenEnvRow } from "./row.ts";

/** What all servers must know about a session. */
export type SessionState = Pick<OpenEnvRow, "episodes" | "playing">;

export interface SharedStateOptions extends Pick<OpenEnvRow, "id" | "owner" | "ref"> {
  readonly rows: Collection<OpenEnvRow>;
  readonly now: () => Date;
  /** True if another server, or this one before, has stored it. */
  readonly isStored: boolean;
}

/** The state of a session in the store. A session that only its own WebSocket uses is not stored. */
export class SharedState {
  readonly id: string;
  readonly #options: SharedStateOptions;
  #isStored: boolean;
  #loaded: Versioned<OpenEnvRow> | null = null;

  constructor(options: SharedStateOptions) {
    this.id = options.id;
    this.#options = options;
    this.#isStored = options.isStored;
  }

  get isStored(): boolean {
    return this.#isStored;
  }

  async store(state: SessionState, options?: InsertOptions): Promise<InsertResult> {
    const { rows, now, id, owner, ref } = this.#options;
    const result = await rows.insert(id, { id, owner, ref, ...state, usedAt: now().toISOString() }, options);
    if (result === "inserted") this.#isStored = true;
    return result;
  }

  /** Null if the session is not stored. */
  async read(): Promise<SessionState | null> {
    return this.#isStored ? (await this.#get()).value : null;
  }

  /** Like `read`; `save` is based on what was loaded last. */
  async load(): Promise<SessionState | null> {
    if (!this.#isStored) return null;
    this.#loaded = await this.#get();
    const { episodes, playing } = this.#loaded.value;
    // A copy: the session changes its episode.
    return { episodes, playing: playing === null ? null : { ...playing } };
  }

  /** False if another server has changed or removed the session since it was loaded. */
  async save(state: SessionState): Promise<boolean> {
    const loaded = this.#loaded;
    if (loaded === null) return true;
    const now = this.#options.now();
    const { episodes, playing, usedAt } = loaded.value;
    const isSame = JSON.stringify({ episodes, playing }) === JSON.stringify(state);
    // A request that changes nothing keeps the session alive too, but not every one needs a write.
    if (isSame && now.getTime() - Date.parse(usedAt) < IDLE_MS / 10) return true;
    return this.#options.rows.swap(loaded, { ...loaded.value, ...state, usedAt: now.toISOString() });
  }

  async remove(): Promise<void> {
    if (this.#isStored) await this.#options.rows.remove(this.id);
  }

  async #get(): Promise<Versioned<OpenEnvRow>> {
    const row = await this.#options.rows.find(this.id);
    if (row !== null) return row;
    throw new PlatformError("session.not_found", "the session was closed, or was not used for too long; begin a new one");
  }
}
