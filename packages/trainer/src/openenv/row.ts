import { createHash } from "node:crypto";
import type { ListedTask, Scored } from "@aenv/contract";
import type { Store } from "@aenv/server/trainer-services";
import { Collection } from "@aenv/server/trainer-services";

/** An episode of a session: from a reset to the next one. */
export interface Playing {
  readonly episodeId: string;
  readonly task: ListedTask | null;
  /** The id of the session of the trainer API that plays it. */
  readonly session: string;
  readonly maxSteps: number | null;
  readonly rewardArguments?: Readonly<Record<string, unknown>>;
  stepCount: number;
  outcome: Scored | null;
  isTruncated: boolean;
  /** Why the episode cannot go on; null if it can. */
  loss: string | null;
}

/** A session that plain HTTP requests can name, in the store: any server can go on with it. */
export interface OpenEnvRow {
  readonly id: string;
  readonly owner: string;
  /** `name@version`. */
  readonly ref: string;
  /** Episodes that were begun. */
  readonly episodes: number;
  readonly playing: Playing | null;
  readonly usedAt: string;
}

/** Sessions without a connection end when they are not used for this long. */
export const IDLE_MS = 3_600_000;

export function openEnvRows(store: Store): Collection<OpenEnvRow> {
  return new Collection(store, "openenv-session", ({ owner }) => ({ owner }));
}

/** The id of the session that plays a named episode: the same at every server. */
export function idOfEpisode(owner: string, ref: string, episodeId: string): string {
  return createHash("sha256")
    .update(JSON.stringify([owner, ref, episodeId]))
    .digest("hex");
}

export function hasExpired({ usedAt }: OpenEnvRow, now: Date): boolean {
  return now.getTime() - Date.parse(usedAt) > IDLE_MS;
}
