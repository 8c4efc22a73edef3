import type { RolloutRequest, RolloutResult, RolloutState, RolloutStatus } from "@aenv/contract";
import type { Caller, Role } from "../access/access.ts";
import { isInScope } from "../access/scopes.ts";
import { Collection } from "../stores/collection.ts";
import type { Store } from "../stores/store.ts";

/** What is needed to play a rollout. It holds the caller's secrets, so it is removed from the row when the rollout is done. */
export interface RolloutWork {
  readonly request: RolloutRequest;
  /** `name@version`. */
  readonly environment: string;
  readonly environmentDigest: string | null;
  /** Of the environment's deploy config and the variables. A row of an earlier version of the server has none. */
  readonly configDigest?: string;
  readonly caller: Omit<Caller, "roles" | "owner"> & { readonly roles: readonly Role[] };
}

/** A server's right to play a rollout and to end it. It is valid while the server is alive and the row holds it. */
export interface RolloutLease {
  readonly server: string;
  /** Another one each time, so that a server that was considered dead cannot end what another plays. */
  readonly key: string;
}

export interface RolloutRow {
  readonly id: string;
  readonly owner: string;
  readonly run: string | null;
  /** `name@version`. A row of an earlier version of the server has none. */
  readonly environment?: string;
  /** Digest of the request, to detect the same id with another request. */
  readonly digest: string;
  readonly state: RolloutState;
  /** Null when the rollout is done. */
  readonly work: RolloutWork | null;
  /** Set while it is played. */
  readonly lease: RolloutLease | null;
  /** Attempts before the current one. */
  readonly attempt: number;
  /** Attempts that ended because their server was lost, or could not store the result. */
  readonly losses: number;
  readonly createdAt: string;
  /** Set when it is done: when, where its result is, and how large it is. */
  readonly done: { readonly at: string; readonly resultKey: string; readonly bytes: number } | null;
}

export function rolloutRows(store: Store): Collection<RolloutRow> {
  return new Collection(store, "rollout", ({ owner, run, state }) => ({
    state,
    owner,
    ...(state !== "done" && { unfinished: owner }),
    ...(run !== null && { run: `${owner}/${run}` }),
  }));
}

/** Results are rows of their own: they are large, and most reads of a rollout do not need them. */
export function resultRows(store: Store): Collection<RolloutResult> {
  return new Collection(store, "rollout-result", () => ({}));
}

/** In the order of keys, the rollouts of an owner are in the order of their ids. */
export function keyOf(owner: string, id: string): string {
  return `${owner}/${id}`;
}

/** A rollout of an environment that the token is not valid for looks like one that does not exist. */
export function maySee({ environment, work }: RolloutRow, caller: Caller): boolean {
  const [name = ""] = (environment ?? work?.environment ?? "").split("@");
  return isInScope(caller, name);
}

export function callerOf({ owner }: RolloutRow, { caller }: RolloutWork): Caller {
  return { ...caller, owner, roles: new Set(caller.roles) };
}

export function statusOf({ id, run, state, attempt, createdAt }: RolloutRow): RolloutStatus {
  return { id, run, status: state, attempt, created_at: createdAt };
}
