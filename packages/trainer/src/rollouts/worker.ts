import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { isPlatformError, PlatformError } from "@aenv/contract";
import type { ModelHttp } from "@aenv/rollout";
import type { Caller, Scheduler } from "@aenv/server/trainer-services";
import { Breaks } from "./breaks.ts";
import { inGroups } from "./in-groups.ts";
import type { InstancePools } from "./instance-pools.ts";
import type { RolloutPlayer } from "./player.ts";
import { resultOf } from "./result.ts";
import { holds, type RolloutTable } from "./rollout-table.ts";
import { callerOf, type RolloutLease, type RolloutRow } from "./row.ts";

export interface RolloutWorkerOptions {
  readonly player: Pick<RolloutPlayer, "play">;
  readonly pools: Pick<InstancePools, "endThoseOf" | "close">;
  readonly http: Pick<ModelHttp, "close">;
  readonly scheduler: Scheduler;
  readonly serverId: string;
  /** No other server uses the store. */
  readonly isAlone: boolean;
  /** Throws if the caller's token was revoked or has expired. */
  readonly stillValid: (caller: Caller) => Promise<unknown>;
  readonly livingServers: () => Promise<ReadonlySet<string>>;
  readonly now: () => Date;
  readonly onFailure: (error: unknown) => void;
}

/** A rollout that was lost this often is not played again: it may be the reason. */
const MAX_LOSSES = 3;
/** How long a shutdown waits until what is played has stopped. */
const CLOSE_MS = 10_000;
/** The longest time in which a server accepts a rollout. */
const ACCEPTING_MS = 60_000;
/** Queued rows that a server looks at in one round, and of these at once. */
const PAGES = 10;
const PAGE = 500;

/** Plays rollouts on this server: takes the lease of a queued row, plays it, and writes the result while it has the lease. */
export class RolloutWorker {
  readonly #options: RolloutWorkerOptions;
  readonly #table: RolloutTable;
  /** Rollouts that this server plays, or that wait for their turn here. */
  readonly #here = new Map<string, { readonly controller: AbortController; readonly caller: Caller }>();
  readonly #closing = new AbortController();
  readonly #playing = new Set<Promise<void>>();
  #cursor: string | undefined;

  constructor(options: RolloutWorkerOptions, table: RolloutTable) {
    this.#options = options;
    this.#table = table;
  }

  /** Aborted when the server shuts down. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  get running(): number {
    return this.#playing.size - this.#options.scheduler.depth("rollouts");
  }

  /** Plays a queued rollout when it is its owner's turn. */
  offer(key: string, row: RolloutRow): void {
    if (this.#here.has(key) || this.#closing.signal.aborted || row.work === null) return;
    const { owner } = row;
    const controller = new AbortController();
    this.#here.set(key, { controller, caller: callerOf(row, row.work) });
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

  /** Stops a rollout if it is played or waits here. */
  stop(key: string): void {
    this.#here.get(key)?.controller.abort();
  }

  /** One round: finds work, takes over from lost servers, and stops what is no longer this server's. */
  async tidy(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    await this.#takeOver();
    if (!this.#options.isAlone) await this.#stopLost();
    await this.#endAllRevoked();
    await this.#findQueued();
  }

  /** Stops playing; what is not done is left to another server, or to the next start. */
  async close(): Promise<void> {
    this.#closing.abort(new PlatformError("server.draining", "the server is shutting down"));
    for (const { controller } of this.#here.values()) controller.abort();
    // An instance that does not end in time ends with its server, or by its time to live.
    const late = pause(CLOSE_MS, undefined, { ref: false });
    await Promise.race([Promise.all(this.#playing).then(() => this.#options.pools.close()), late]);
    await this.#options.http.close();
  }

  async #play(key: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { player, serverId } = this.#options;
    const lease: RolloutLease = { server: serverId, key: randomBytes(12).toString("hex") };
    const row = await this.#table.take(key, lease);
    if (row === null || row.work === null) return;
    if (await this.#endRevoked(key, await this.#problemOf(callerOf(row, row.work)))) return;
    const work = await this.#table.workOf(row);
    if (work === null) return this.#awaitRequest(key, row, lease);
    let trajectory: Awaited<ReturnType<RolloutPlayer["play"]>>;
    try {
      trajectory = await player.play(row, work, signal, (attempt) => this.#table.beginAttempt(key, lease, attempt));
    } catch (error) {
      await this.#table.giveBack(key, lease);
      throw error;
    }
    if (trajectory === null) return;
    if (signal.aborted && trajectory.outcome.kind === "unscored") await this.#table.giveBack(key, lease);
    else await this.#table.end(key, resultOf(trajectory, work.request), (now) => holds(now, lease));
  }

  /** Another server may be accepting the rollout, and store its request in a moment. If that server was lost, nobody can play it. */
  async #awaitRequest(key: string, { createdAt }: RolloutRow, lease: RolloutLease): Promise<void> {
    if (this.#options.now().getTime() - Date.parse(createdAt) < ACCEPTING_MS) return this.#table.giveBack(key, lease);
    const message = "its server was lost while it accepted the rollout; request it again with a new id";
    const outcome = { kind: "unscored", cause: "sandbox", stage: "start", retryable: true, message } as const;
    await this.#table.endUnplayed(key, outcome, (now) => holds(now, lease));
  }

  /** Rollouts of lost servers, and those whose result could not be stored here, are queued again, as a new attempt. */
  async #takeOver(): Promise<void> {
    const { livingServers, serverId } = this.#options;
    let living: ReadonlySet<string> | null = null;
    /** Lost servers and owners whose instances are ended in this round. In the next one, nothing of theirs is left to take over. */
    const ended = new Set<string>();
    for await (const { key, value: row } of this.#table.running()) {
      const { lease, work } = row;
      if (lease === null) continue;
      if (lease.server === serverId) {
        if (this.#here.has(key)) continue;
      } else {
        living ??= await livingServers();
        if (living.has(lease.server)) continue;
        if (work !== null) this.#endInstances(lease.server, callerOf(row, work), ended);
      }
      if (row.losses + 1 >= MAX_LOSSES) await this.#giveUp(key, lease);
      else if (await this.#table.queueAgain(key, lease)) this.offer(key, row);
    }
  }

  async #giveUp(key: string, lost: RolloutLease): Promise<void> {
    const message = `it was played ${MAX_LOSSES} times without a result: its server was lost, or could not store the result`;
    const outcome = { kind: "unscored", cause: "sandbox", stage: "play", retryable: true, message } as const;
    await this.#table.endUnplayed(key, outcome, (now) => holds(now, lost));
  }

  /** Many rollouts have the same token, which is checked once. */
  async #endAllRevoked(): Promise<void> {
    const problems = new Map<string | null, Promise<PlatformError | null>>();
    await inGroups([...this.#here], async ([key, { caller }]) => {
      const problem = problems.get(caller.tokenId) ?? this.#problemOf(caller);
      problems.set(caller.tokenId, problem);
      await this.#endRevoked(key, await problem);
    });
  }

  /** Null if the caller's token is valid. */
  #problemOf(caller: Caller): Promise<PlatformError | null> {
    return this.#options.stillValid(caller).then(() => null, rejected);
  }

  /** A rollout ends with the token that requested it. False if the token is valid. */
  async #endRevoked(key: string, problem: PlatformError | null): Promise<boolean> {
    if (problem === null) return false;
    const outcome = { kind: "unscored", cause: "cancelled", stage: "play", retryable: false, message: problem.message } as const;
    await this.#table.endUnplayed(key, outcome, (now) => now.state !== "done");
    this.stop(key);
    return true;
  }

  #endInstances(server: string, caller: Caller, ended: Set<string>): void {
    const name = JSON.stringify([server, caller.owner]);
    if (ended.has(name)) return;
    ended.add(name);
    void this.#options.pools.endThoseOf(server, caller).catch(this.#options.onFailure);
  }

  /** Stops what was cancelled at another server, or taken over by one. */
  async #stopLost(): Promise<void> {
    await inGroups([...this.#here], async ([key, { controller }]) => {
      const row = await this.#table.find(key);
      if (row === null || !this.#mayGoOn(row)) controller.abort();
    });
  }

  #mayGoOn({ state, lease }: RolloutRow): boolean {
    return state === "queued" || (state === "running" && lease?.server === this.#options.serverId);
  }

  /** Other servers may have accepted more than they can play. Some pages in each round, so that all owners are reached in turn. */
  async #findQueued(): Promise<void> {
    const where = { index: "state", value: "queued" };
    const breaks = new Breaks();
    for (let pages = 0; pages < PAGES; pages++) {
      const page = await this.#table.list({ where, limit: PAGE, ...(this.#cursor !== undefined && { after: this.#cursor }) });
      for (const { key, value } of page) this.offer(key, value);
      this.#cursor = page.length < PAGE ? undefined : page.at(-1)?.key;
      if (this.#cursor === undefined) return;
      await breaks.take();
    }
  }
}

/** Only a refusal says that a token is not valid any more: a store that does not answer says nothing. */
function rejected(error: unknown): PlatformError {
  if (isPlatformError(error, "access.unauthenticated")) return error;
  throw error;
}
