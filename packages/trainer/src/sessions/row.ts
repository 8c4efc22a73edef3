import { type ListedTask, PlatformError, type SessionScore } from "@aenv/contract";
import type { Caller, Store } from "@aenv/server/trainer-services";
import { Collection, isInScope } from "@aenv/server/trainer-services";

/**
 * A session in the store. The state of its episode is in the sandbox, so any server on the store can go on with it. Variables are not
 * stored: they may be secrets.
 */
export interface SessionRow {
  readonly id: string;
  readonly owner: string;
  readonly environment: { readonly name: string; readonly version: string };
  readonly instanceId: string;
  readonly task: ListedTask | null;
  readonly seed: number;
  readonly isDone: boolean;
  /** Null until the episode is scored; then the instance has ended. */
  readonly outcome: SessionScore["outcome"] | null;
  /** Set with the outcome, in an environment with roles. */
  readonly roles?: SessionScore["roles"];
  readonly ttlSeconds: number;
  /** The instance ends at the same time. */
  readonly expiresAt: string;
  readonly createdAt: string;
}

export function sessionRows(store: Store): Collection<SessionRow> {
  return new Collection(store, "session", ({ owner }) => ({ owner }));
}

/** A session of another owner, or of an environment that the token is not valid for, looks like one that does not exist. */
export function maySee(row: SessionRow, caller: Caller): boolean {
  return isInScope(caller, row.environment.name) && (caller.roles.has("admin") || row.owner === caller.owner);
}

export function notFound(id: string): PlatformError {
  return new PlatformError(
    "session.not_found",
    `session '${id}' not found: it was deleted, was idle for too long, or belongs to another owner`,
  );
}

/**
 * When an idle session ends. A quarter is added, so that not every step has to renew it.
 */
export function expiryOf(ttlSeconds: number, now: Date): string {
  return new Date(now.getTime() + lifeSeconds(ttlSeconds) * 1_000).toISOString();
}

/** How long the instance lives from its last renewal. */
export function lifeSeconds(ttlSeconds: number): number {
  return Math.ceil(ttlSeconds * 1.25);
}

export function hasExpired({ expiresAt }: Pick<SessionRow, "expiresAt">, now: Date): boolean {
  return Date.parse(expiresAt) <= now.getTime();
}

/** Whether less than the time to live is left. */
export function needsRenewal({ expiresAt, ttlSeconds }: SessionRow, now: Date): boolean {
  return Date.parse(expiresAt) - now.getTime() < ttlSeconds * 1_000;
}
