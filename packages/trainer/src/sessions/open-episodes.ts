import { type EpisodeTask, instancePrefix, PlatformError } from "@aenv/contract";
import { Episode, type EpisodeOptions, Match, type Played, rolesOf } from "@aenv/rollout";
import { Environment } from "@aenv/sdk";
import type { Caller } from "@aenv/server/trainer-services";
import type { CallerAccess, Loopback } from "../loopback/loopback.ts";
import { hasExpired, type SessionRow } from "./row.ts";

/** What this server keeps of a session that it has used. Another server can make it again from the row. */
interface OpenEpisode {
  readonly episode: Played;
  readonly access: CallerAccess;
  readonly tokenId: string | null;
  readonly ending: AbortController;
  expiresAt: string;
}

export interface OpenEpisodesOptions {
  readonly loopback: Loopback;
  readonly now: () => Date;
}

/** Longer than a tool should take; the environment's own timeouts are shorter. */
const CALL_TIMEOUT_MS = 10 * 60_000;
export const callLimits = { timeoutMs: CALL_TIMEOUT_MS, maxRetries: 0 } as const;

/** The episodes of the sessions that this server has used, by session. */
export class OpenEpisodes {
  readonly #options: OpenEpisodesOptions;
  readonly #closing: AbortSignal;
  readonly #open = new Map<string, OpenEpisode>();

  constructor(options: OpenEpisodesOptions, closing: AbortSignal) {
    this.#options = options;
    this.#closing = closing;
  }

  add(id: string, open: OpenEpisode): void {
    this.#open.set(id, open);
  }

  /** The one in memory, or a new one on the same instance. */
  async get(row: SessionRow, caller: Caller): Promise<Played> {
    const known = this.#open.get(row.id);
    if (known !== undefined && known.tokenId === caller.tokenId) return known.episode;
    if (known !== undefined) this.forget(row.id);
    const access = this.#options.loopback.as(caller);
    const ending = new AbortController();
    const environment = new Environment(`${row.environment.name}@${row.environment.version}`, {
      instanceUrl: access.dataUrl + instancePrefix(row.instanceId),
      apiKey: access.apiKey,
      maxAnswerBytes: access.maxAnswerBytes,
      maxAnswerValues: access.maxAnswerValues,
      ...callLimits,
      skipHealthCheck: true,
    });
    try {
      const task = row.task === null ? null : { id: row.task.id };
      const signal = AbortSignal.any([this.#closing, ending.signal]);
      const options = episodeOptions(environment, task?.id ?? null, row.seed, signal);
      const hasRoles = Object.keys(rolesOf(await environment.episode.abilities({ signal }))).length > 0;
      const episode = hasRoles ? await Match.resume(options, task) : await Episode.resume(options, { task, isDone: row.isDone });
      this.add(row.id, { episode, access, tokenId: caller.tokenId, ending, expiresAt: row.expiresAt });
      return episode;
    } catch (error) {
      access[Symbol.dispose]();
      throw error;
    }
  }

  renew(id: string, expiresAt: string): void {
    const open = this.#open.get(id);
    if (open !== undefined) open.expiresAt = expiresAt;
  }

  /** Aborts the calls of the episode. Its instance is not ended. */
  forget(id: string): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    this.#open.delete(id);
    open.ending.abort(new PlatformError("request.cancelled", "the session was ended"));
    open.access[Symbol.dispose]();
  }

  forgetExpired(isInUse: (id: string) => boolean): void {
    const now = this.#options.now();
    for (const [id, open] of this.#open) if (!isInUse(id) && hasExpired(open, now)) this.forget(id);
  }

  forgetAll(): void {
    for (const id of [...this.#open.keys()]) this.forget(id);
  }
}

export function episodeOptions(instance: Environment, task: EpisodeTask | null, seed: number, signal: AbortSignal): EpisodeOptions {
  return { instance, task, seed, limits: {}, signal, recordsDigests: false, now: () => performance.now() };
}
