import { randomBytes } from "node:crypto";
import type { Role, RolloutRequest, RolloutState, RolloutStatus } from "@aenv/contract";
import type { Caller, Store } from "@aenv/server/trainer-services";
import { Collection, isInScope } from "@aenv/server/trainer-services";
import { sizeClassOf, sizeIndex } from "./sizes.ts";
import type { StoredSize } from "./stored-results.ts";

/** A larger request is a row of its own, so that rows of rollouts stay small: they are read often, and in pages of hundreds. */
export const LARGE_REQUEST = 4 * 1024;

/** What is needed to play a rollout. It holds the caller's secrets, so it is removed from the store when the rollout is done. */
export interface RolloutWork {
  readonly request: RolloutRequest;
  /** `name@version`. */
  readonly environment: string;
  readonly environmentDigest: string | null;
  /** The digest of the environment's deploy config and the variables. A row of an earlier version of the server has none. */
  readonly configDigest?: string;
  readonly caller: Omit<Caller, "roles" | "owner"> & { readonly roles: readonly Role[] };
}

/** The request is null if it is a row of its own. */
export type StoredWork = Omit<RolloutWork, "request"> & { readonly request: RolloutRequest | null };

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
  readonly work: StoredWork | null;
  /** Key of the row with a large request. The row of the rollout names it until it is removed, so a crash leaves no request behind. */
  readonly requestKey?: string | null;
  /** The size of the request. A row of an earlier version of the server has none; its request is in the row, whatever its size. */
  readonly requestBytes?: number;
  /** Set while it is played. */
  readonly lease: RolloutLease | null;
  /** Attempts before the current one. */
  readonly attempt: number;
  /** Attempts that ended because their server was lost, or could not store the result. */
  readonly losses: number;
  readonly createdAt: string;
  /** Set when it is done: when, where its result is, and how large it is. */
  readonly done: ({ readonly at: string; readonly resultKey: string } & StoredSize) | null;
}

export function rolloutRows(store: Store): Collection<RolloutRow> {
  return new Collection(store, "rollout", ({ owner, run, state, requestKey = null, requestBytes = 0 }) => ({
    state,
    owner,
    ...(state !== "done" && { unfinished: owner, unfinishedSize: sizeIndex(owner, sizeClassOf(requestBytes)) }),
    ...(state === "done" && requestKey !== null && { left: "request" }),
    ...(run !== null && { run: `${owner}/${run}` }),
  }));
}

/** Large requests of rollouts that are not done. */
export function requestRows(store: Store): Collection<RolloutRequest> {
  return new Collection(store, "rollout-request", () => ({}));
}

/** The part of a row that says where the request is: in the row itself or, if it is large, in one of its own. */
export function placeRequest(key: string, request: RolloutRequest, bytes: number) {
  const requestKey = bytes > LARGE_REQUEST ? `${key}#${randomBytes(8).toString("hex")}` : null;
  return { requestKey, requestBytes: bytes, request: requestKey === null ? request : null };
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

export function callerOf({ owner }: RolloutRow, { caller }: StoredWork): Caller {
  return { ...caller, owner, roles: new Set(caller.roles) };
}

export function statusOf({ id, run, state, attempt, createdAt }: RolloutRow): RolloutStatus {
  return { id, run, status: state, attempt, created_at: createdAt };
}
