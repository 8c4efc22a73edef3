import { createHash, randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { canonicalJson, type Outcome, PlatformError, type RolloutRequest, type RolloutResult, type RolloutsRequest } from "@aenv/contract";
import type { ModelHttp } from "@aenv/rollout";
import type { Caller } from "../access/access.ts";
import type { Hub } from "../hub/hub.ts";
import type { Scheduler } from "../slots/scheduler.ts";
import type { Collection } from "../stores/collection.ts";
import type { Versioned } from "../stores/store.ts";
import { assertPlayable } from "./admission.ts";
import type { InstancePools } from "./instance-pools.ts";
import type { ModelPolicy } from "./model-policy.ts";
import type { RolloutPlayer } from "./player.ts";
import { resultOf, unplayedResult } from "./result.ts";
import { callerOf, keyOf, type RolloutLease, type RolloutRow, type RolloutWork } from "./row.ts";

export interface RolloutsOptions {
  readonly rows: Collection<RolloutRow>;
  readonly results: Collection<RolloutResult>;
  readonly hub: Hub;
  readonly policy: ModelPolicy;
  readonly player: RolloutPlayer;
  readonly pools: InstancePools;
  readonly http: ModelHttp;
  readonly scheduler: Scheduler;
  readonly serverId: string;
  /** No other server uses the store. */
  readonly isAlone: boolean;
  readonly livingServers: () => Promise<ReadonlySet<string>>;
  /** Most unfinished rollouts of one owner. */
  readonly maxUnfinished: number;
  readonly keepMs: number;
  /** Most bytes of all results together; the oldest are removed first. */
  readonly maxBytes: number;
  readonly now: () => Date;
  readonly onDone: (outcome: Outcome) => void;
  readonly onFailure: (error: unknown) => void;
}

/** A rollout whose server was lost this often is not played again: it may be the reason. */
const MAX_LOSSES = 3;
/** How long a shutdown waits until what is played has stopped. */
const CLOSE_MS = 10_000;
/** Rows of one owner that are read or written at the same time. */
const AT_ONCE = 64;
/** Queued rows that a server looks at in one round. */
const PAGE = 500;

/**
 * Accepts rollouts, plays them and keeps their results. A rollout is a row first: any server that shares the store may play it, and only
 * the server that holds its lease can write its result.
 */
export class Rollouts {
  readonly #options: RolloutsOptions;
  /** Rollouts that this server plays, or that wait for their turn here. */
  readonly #here = new Map<string, AbortController>();
  readonly #listeners = new Set<(key: string) => void>();
  readonly #closing = new AbortController();
  readonly #playing = new Set<Promise<void>>();
  /** Lost servers and owners whose instances this server has ended. */
  readonly #endedInstances = new Set<string>();
  #cursor: string | undefined;

  constructor(options: RolloutsOptions) {
    this.#options = options;
  }

  /** Aborted when the server shuts down; answers that wait for results end then. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  get isAlone(): boolean {
    return this.#options.isAlone;
  }

  get running(): number {
    return this.#playing.size - this.#options.scheduler.depth("rollouts");
  }

  /** Accepts all rollouts of a request or none. Those that are known already are joined. Returns their keys. */
  async submit({ rollouts, run = null }: RolloutsRequest, caller: Caller): Promise<string[]> {
    if (this.#closing.signal.aborted) throw new PlatformError("server.draining", "this server is shutting down; retry later");
    for (const request of rollouts) assertPlayable(request, this.#options.policy);
    const wanted = new Map<string, { readonly request: RolloutRequest; readonly digest: string }>();
    for (const request of rollouts) {
      const key = keyOf(caller.owner, request.id);
      const digest = digestOf({ run, request });
      if ((wanted.get(key)?.digest ?? digest) !== digest) throw conflict(request.id);
      wanted.set(key, { request, digest });
    }
    const missing: string[] = [];
    await inParallel([...wanted], async ([key, { request, digest }]) => {
      const known = await this.#options.rows.find(key);
      if (known === null) missing.push(key);
      else if (known.value.digest !== digest) throw conflict(request.id);
    });
    const environments = await this.#resolve(
      missing.map((key) => (wanted.get(key) as { request: RolloutRequest }).request.environment),
      caller,
    );
    await this.#assertRoom(caller.owner, missing.length);
    const { owner, roles, ...rest } = caller;
    await inParallel(missing, async (key) => {
      const { request, digest } = wanted.get(key) as { request: RolloutRequest; digest: string };
      const resolved = environments.get(request.environment) as Pick<RolloutWork, "environment" | "environmentDigest">;
      const row: RolloutRow = {
        id: request.id,
        owner,
        run,
        digest,
        state: "queued",
        work: { request, ...resolved, caller: { ...rest, roles: [...roles] } },
        lease: null,
        attempt: 0,
        losses: 0,
        createdAt: this.#options.now().toISOString(),
        done: null,
      };
      if ((await this.#options.rows.insert(key, row)) === "inserted") return this.#offer(key, owner);
      const known = await this.#options.rows.find(key);
      if (known !== null && known.value.digest !== digest) throw conflict(request.id);
    });
    return rollouts.map(({ id }) => keyOf(owner, id));
  }

  async get(id: string, caller: Caller): Promise<RolloutRow> {
    const row = await this.#options.rows.find(keyOf(caller.owner, id));
    if (row === null) throw notFound(id);
    return row.value;
  }

  async find(key: string): Promise<RolloutRow | null> {
    return (await this.#options.rows.find(key))?.value ?? null;
  }

  /** Null while the rollout is not done. */
  async resultOf({ done }: RolloutRow): Promise<RolloutResult | null> {
    return done === null ? null : ((await this.#options.results.find(done.resultKey))?.value ?? null);
  }

  /** Rollouts of the caller in the order of their ids. */
  async list(query: { run?: string | undefined; after?: string | undefined; limit: number }, caller: Caller): Promise<RolloutRow[]> {
    const { run, after, limit } = query;
    const { owner } = caller;
    const where = run === undefined ? { index: "owner", value: owner } : { index: "run", value: `${owner}/${run}` };
    const rows = await this.#options.rows.list({ where, limit, ...(after !== undefined && { after: keyOf(owner, after) }) });
    return rows.map(({ value }) => value);
  }

  /** Ends a rollout at once, wherever it is played. A rollout that is done stays as it is. */
  async cancel(id: string, caller: Caller): Promise<void> {
    const key = keyOf(caller.owner, id);
    const row = await this.#options.rows.find(key);
    if (row === null) throw notFound(id);
    const message = row.value.state === "running" ? "cancelled while it was played" : "cancelled before it was played";
    const stage = row.value.state === "running" ? "play" : "start";
    await this.#endUnplayed(key, { kind: "unscored", cause: "cancelled", stage, retryable: false, message }, (now) => now.state !== "done");
    this.#here.get(key)?.abort();
  }

  /** Calls the listener with the key of each rollout that this server ends. The returned function removes it. */
  onDone(listener: (key: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** One round: finds work, takes over from lost servers, and stops what is no longer this server's. */
  async tidy(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    await this.#takeOver();
    if (!this.#options.isAlone) await this.#stopLost();
    await this.#findQueued();
  }

  /** Removes results that are too old, and the oldest while there are too many bytes. */
  async sweep(): Promise<void> {
    const { rows, keepMs, maxBytes, now } = this.#options;
    const kept: { readonly key: string; readonly at: string; readonly bytes: number }[] = [];
    let bytes = 0;
    for await (const row of rows.each({ index: "state", value: "done" })) {
      const { done } = row.value;
      if (done === null) continue;
      if (now().getTime() - Date.parse(done.at) > keepMs) await this.#remove(row);
      else {
        kept.push({ key: row.key, at: done.at, bytes: done.bytes });
        bytes += done.bytes;
      }
    }
    kept.sort((one, other) => one.at.localeCompare(other.at));
    for (const { key, bytes: own } of kept) {
      if (bytes <= maxBytes) return;
      const row = await rows.find(key);
      if (row !== null) await this.#remove(row);
      bytes -= own;
    }
  }

  /** Stops playing; what is not done is left to another server, or to the next start. */
  async close(): Promise<void> {
    this.#closing.abort(new PlatformError("server.draining", "the server is shutting down"));
    for (const controller of this.#here.values()) controller.abort();
    // An instance that does not end in time ends with its server, or by its time to live.
    const late = pause(CLOSE_MS, undefined, { ref: false });
    await Promise.race([Promise.all(this.#playing).then(() => this.#options.pools.close()), late]);
    await this.#options.http.close();
  }

  #offer(key: string, owner: string): void {
    if (this.#here.has(key) || this.#closing.signal.aborted) return;
    const controller = new AbortController();
    this.#here.set(key, controller);
    const { signal } = controller;
    const playing = this.#options.scheduler
      .run({ kind: "rollouts", owner }, () => this.#play(key, signal), signal)
      .catch((error: unknown) => {
        if (!signal.aborted) this.#options.onFailure(error);
      })
      .finally(() => {
        this.#here.delete(key);
        this.#playing.delete(playing);
      });
    this.#playing.add(playing);
  }

  async #play(key: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { rows, player, serverId } = this.#options;
    const lease: RolloutLease = { server: serverId, key: randomBytes(12).toString("hex") };
    const row = await rows.update(key, (now) => (now.state === "queued" ? { ...now, state: "running", lease } : null));
    if (row === null || row.work === null) return;
    const isMine = (now: RolloutRow) => now.lease?.key === lease.key;
    const { work } = row;
    const beginAttempt = async (attempt: number) => (await rows.update(key, (now) => (isMine(now) ? { ...now, attempt } : null))) !== null;
    let trajectory: Awaited<ReturnType<RolloutPlayer["play"]>>;
    try {
      trajectory = await player.play(row, work, signal, beginAttempt);
    } catch (error) {
      await this.#giveBack(key, isMine);
      throw error;
    }
    if (trajectory === null) return;
    if (signal.aborted && trajectory.outcome.kind === "unscored") await this.#giveBack(key, isMine);
    else await this.#end(key, resultOf(trajectory, work.request), isMine);
  }

  /** Makes a rollout that was not finished available again. */
  async #giveBack(key: string, isMine: (row: RolloutRow) => boolean): Promise<void> {
    await this.#options.rows.update(key, (now) => (isMine(now) ? { ...now, state: "queued", lease: null } : null));
  }

  /** Writes the result first, so that a rollout that is done has one. False if the row is not in the expected state. */
  async #end(key: string, result: RolloutResult, mayEnd: (row: RolloutRow) => boolean): Promise<boolean> {
    const { rows, results, now, onDone } = this.#options;
    const resultKey = `${key}#${randomBytes(8).toString("hex")}`;
    const bytes = Buffer.byteLength(JSON.stringify(result));
    await results.insert(resultKey, result);
    const done = { at: now().toISOString(), resultKey, bytes };
    const ended = await rows
      .update(key, (row) => (mayEnd(row) ? { ...row, state: "done", work: null, lease: null, attempt: result.attempt, done } : null))
      .catch(async (error: unknown) => {
        await results.remove(resultKey).catch(() => {});
        throw error;
      });
    if (ended === null) {
      await results.remove(resultKey);
      return false;
    }
    onDone(result.outcome);
    for (const listener of this.#listeners) listener(key);
    return true;
  }

  async #endUnplayed(key: string, outcome: Outcome, mayEnd: (row: RolloutRow) => boolean): Promise<void> {
    const row = await this.find(key);
    if (row === null || row.work === null || !mayEnd(row)) return;
    await this.#end(key, unplayedResult(row, row.work, outcome, this.#options.now()), mayEnd);
  }

  async #remove({ key, rev, value: { done } }: Versioned<RolloutRow>): Promise<void> {
    if ((await this.#options.rows.remove(key, rev)) && done !== null) await this.#options.results.remove(done.resultKey);
  }

  /** Rollouts of lost servers are queued again, as a new attempt. */
  async #takeOver(): Promise<void> {
    const { rows, livingServers, serverId } = this.#options;
    let living: ReadonlySet<string> | null = null;
    for await (const { key, value } of rows.each({ index: "state", value: "running" })) {
      const server = value.lease?.server;
      if (server === undefined || server === serverId) continue;
      living ??= await livingServers();
      if (living.has(server)) continue;
      if (value.work !== null) this.#endInstances(server, callerOf(value, value.work));
      const isLost = (now: RolloutRow) => now.state === "running" && now.lease?.key === value.lease?.key;
      if (value.losses + 1 >= MAX_LOSSES) {
        const message = `its server was lost ${MAX_LOSSES} times while it was played`;
        await this.#endUnplayed(key, { kind: "unscored", cause: "sandbox", stage: "play", retryable: true, message }, isLost);
        continue;
      }
      const again = (now: RolloutRow): RolloutRow => ({
        ...now,
        state: "queued",
        lease: null,
        attempt: now.attempt + 1,
        losses: now.losses + 1,
      });
      const won = await rows.update(key, (now) => (isLost(now) ? again(now) : null));
      if (won !== null) this.#offer(key, won.owner);
    }
  }

  #endInstances(server: string, caller: Caller): void {
    const name = JSON.stringify([server, caller.owner]);
    if (this.#endedInstances.has(name)) return;
    this.#endedInstances.add(name);
    void this.#options.pools.endThoseOf(server, caller).catch(this.#options.onFailure);
  }

  /** Stops what was cancelled at another server, or taken over by one. */
  async #stopLost(): Promise<void> {
    const { serverId } = this.#options;
    await inParallel([...this.#here], async ([key, controller]) => {
      const row = await this.find(key);
      if (row === null || row.state === "done" || (row.state === "running" && row.lease?.server !== serverId)) controller.abort();
    });
  }

  /** Other servers may have accepted more than they can play. A page in each round, so that all owners are reached in turn. */
  async #findQueued(): Promise<void> {
    const where = { index: "state", value: "queued" };
    const page = await this.#options.rows.list({ where, limit: PAGE, ...(this.#cursor !== undefined && { after: this.#cursor }) });
    for (const { key, value } of page) this.#offer(key, value.owner);
    this.#cursor = page.length < PAGE ? undefined : page.at(-1)?.key;
  }

  async #resolve(refs: readonly string[], caller: Caller): Promise<Map<string, Pick<RolloutWork, "environment" | "environmentDigest">>> {
    const found = new Map<string, Pick<RolloutWork, "environment" | "environmentDigest">>();
    for (const ref of new Set(refs)) {
      const { name, version, bundleDigest } = await this.#options.hub.resolve(ref, caller);
      found.set(ref, { environment: `${name}@${version}`, environmentDigest: bundleDigest });
    }
    return found;
  }

  async #assertRoom(owner: string, more: number): Promise<void> {
    const { rows, maxUnfinished } = this.#options;
    if (more === 0) return;
    const unfinished = await rows.count("unfinished", owner);
    if (unfinished + more <= maxUnfinished) return;
    throw new PlatformError(
      "quota.exceeded",
      `'${owner}' has ${unfinished} unfinished rollouts, and ${more} more would exceed the limit of ${maxUnfinished}; wait for some to end`,
      { details: { owner, maxUnfinished, retryAfterSeconds: 5 } },
    );
  }
}

/** In groups, so that a large request does not occupy the store alone. */
async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) await Promise.all(items.slice(at, at + AT_ONCE).map(work));
}

/** Independent of the order of the fields. */
function digestOf(request: unknown): string {
  return createHash("sha256").update(canonicalJson(request)).digest("hex");
}

function conflict(id: string): PlatformError {
  return new PlatformError("request.conflict", `rollout '${id}' was requested before with another body; use a new id, or the same body`);
}

function notFound(id: string): PlatformError {
  return new PlatformError("rollout.not_found", `there is no rollout '${id}'; its result may have been removed`);
}
