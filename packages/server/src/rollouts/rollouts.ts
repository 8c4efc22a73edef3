import { createHash } from "node:crypto";
import { canonicalJson, type Outcome, PlatformError, type RolloutRequest, type RolloutResult, type RolloutsRequest } from "@aenv/contract";
import { configDigestOf } from "@aenv/rollout";
import type { Caller } from "../access/access.ts";
import type { Hub } from "../hub/hub.ts";
import { assertPlayable } from "./admission.ts";
import { inGroups } from "./in-groups.ts";
import type { ModelPolicy } from "./model-policy.ts";
import { RolloutTable, type RolloutTableOptions } from "./rollout-table.ts";
import { keyOf, maySee, type RolloutRow, type RolloutWork } from "./row.ts";
import { RolloutWorker, type RolloutWorkerOptions } from "./worker.ts";

interface ResolvedEnvironment extends Pick<RolloutWork, "environment" | "environmentDigest"> {
  readonly deployConfig: Readonly<Record<string, unknown>>;
}

export interface RolloutsOptions extends RolloutTableOptions, RolloutWorkerOptions {
  readonly hub: Hub;
  readonly policy: ModelPolicy;
  /** Most unfinished rollouts of one owner. */
  readonly maxUnfinished: number;
  readonly onDone: (outcome: Outcome) => void;
}

/** Accepts rollouts and shows their results. A rollout is a row first: any server that shares the store may play it. */
export class Rollouts {
  readonly #options: RolloutsOptions;
  readonly #table: RolloutTable;
  readonly #worker: RolloutWorker;
  readonly #listeners = new Set<(key: string) => void>();

  constructor(options: RolloutsOptions) {
    this.#options = options;
    this.#table = new RolloutTable(options, (key, outcome) => {
      options.onDone(outcome);
      for (const listener of this.#listeners) listener(key);
    });
    this.#worker = new RolloutWorker(options, this.#table);
  }

  /** Aborted when the server shuts down; answers that wait for results end then. */
  get closing(): AbortSignal {
    return this.#worker.closing;
  }

  get isAlone(): boolean {
    return this.#options.isAlone;
  }

  get running(): number {
    return this.#worker.running;
  }

  /** Accepts all rollouts of a request or none. Those that are known already are joined. Returns their keys. */
  async submit({ rollouts, run = null }: RolloutsRequest, caller: Caller): Promise<string[]> {
    if (this.closing.aborted) throw new PlatformError("server.draining", "this server is shutting down; retry later");
    for (const request of rollouts) assertPlayable(request, this.#options.policy);
    const wanted = new Map<string, { readonly request: RolloutRequest; readonly digest: string }>();
    for (const request of rollouts) {
      const key = keyOf(caller.owner, request.id);
      const digest = digestOf({ run, request });
      if ((wanted.get(key)?.digest ?? digest) !== digest) throw conflict(request.id);
      wanted.set(key, { request, digest });
    }
    const missing: string[] = [];
    await inGroups([...wanted], async ([key, { request, digest }]) => {
      const known = await this.#table.find(key);
      if (known === null) missing.push(key);
      else if (!maySee(known, caller)) throw conflict(request.id);
      else if (known.digest !== digest) throw conflict(request.id);
    });
    const environments = await this.#resolve(
      missing.map((key) => (wanted.get(key) as { request: RolloutRequest }).request.environment),
      caller,
    );
    await this.#assertRoom(caller.owner, missing.length);
    const { owner, roles, ...rest } = caller;
    await inGroups(missing, async (key) => {
      const { request, digest } = wanted.get(key) as { request: RolloutRequest; digest: string };
      const { deployConfig, ...resolved } = environments.get(request.environment) as ResolvedEnvironment;
      const configDigest = configDigestOf(deployConfig, request.variables);
      const row: RolloutRow = {
        id: request.id,
        owner,
        run,
        environment: resolved.environment,
        digest,
        state: "queued",
        work: { request, ...resolved, configDigest, caller: { ...rest, roles: [...roles] } },
        lease: null,
        attempt: 0,
        losses: 0,
        createdAt: this.#options.now().toISOString(),
        done: null,
      };
      if (await this.#table.insert(key, row)) return this.#worker.offer(key, row);
      const known = await this.#table.find(key);
      if (known !== null && known.digest !== digest) throw conflict(request.id);
    });
    return rollouts.map(({ id }) => keyOf(owner, id));
  }

  async get(id: string, caller: Caller): Promise<RolloutRow> {
    const row = await this.find(keyOf(caller.owner, id));
    if (row === null || !maySee(row, caller)) throw notFound(id);
    return row;
  }

  find(key: string): Promise<RolloutRow | null> {
    return this.#table.find(key);
  }

  /** Null while the rollout is not done. */
  resultOf(row: RolloutRow): Promise<RolloutResult | null> {
    return this.#table.resultOf(row);
  }

  /** Rollouts of the caller in the order of their ids. */
  async list(query: { run?: string | undefined; after?: string | undefined; limit: number }, caller: Caller): Promise<RolloutRow[]> {
    const { run, after, limit } = query;
    const { owner } = caller;
    const where = run === undefined ? { index: "owner", value: owner } : { index: "run", value: `${owner}/${run}` };
    const seen: RolloutRow[] = [];
    for (let from = after === undefined ? undefined : keyOf(owner, after); ; ) {
      const rows = await this.#table.list({ where, limit, ...(from !== undefined && { after: from }) });
      for (const { value } of rows) if (seen.length < limit && maySee(value, caller)) seen.push(value);
      from = rows.at(-1)?.key;
      if (seen.length >= limit || rows.length < limit) return seen;
    }
  }

  /** Ends a rollout at once, wherever it is played. A rollout that is done stays as it is. */
  async cancel(id: string, caller: Caller): Promise<void> {
    const key = keyOf(caller.owner, id);
    const { state } = await this.get(id, caller);
    const message = state === "running" ? "cancelled while it was played" : "cancelled before it was played";
    const stage = state === "running" ? "play" : "start";
    const outcome = { kind: "unscored", cause: "cancelled", stage, retryable: false, message } as const;
    await this.#table.endUnplayed(key, outcome, (now) => now.state !== "done");
    this.#worker.stop(key);
  }

  /** Calls the listener with the key of each rollout that this server ends. The returned function removes it. */
  onDone(listener: (key: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** One round of this server's work; see `RolloutWorker`. */
  async tidy(): Promise<void> {
    await this.#worker.tidy();
    await this.#table.scrub();
  }

  /** Removes old results. */
  sweep(): Promise<void> {
    return this.#table.sweep();
  }

  /** Stops playing; what is not done is left to another server, or to the next start. */
  async close(): Promise<void> {
    await this.#worker.close();
    await this.#table.scrub();
  }

  async #resolve(refs: readonly string[], caller: Caller): Promise<Map<string, ResolvedEnvironment>> {
    const found = new Map<string, ResolvedEnvironment>();
    for (const ref of new Set(refs)) {
      const { name, version, bundleDigest, config } = await this.#options.hub.resolve(ref, caller);
      found.set(ref, { environment: `${name}@${version}`, environmentDigest: bundleDigest, deployConfig: config.deployConfig ?? {} });
    }
    return found;
  }

  async #assertRoom(owner: string, more: number): Promise<void> {
    const { maxUnfinished } = this.#options;
    if (more === 0) return;
    const unfinished = await this.#table.countUnfinished(owner);
    if (unfinished + more <= maxUnfinished) return;
    throw new PlatformError(
      "quota.exceeded",
      `'${owner}' has ${unfinished} unfinished rollouts, and ${more} more would exceed the limit of ${maxUnfinished}; wait for some to end`,
      { details: { owner, maxUnfinished, retryAfterSeconds: 5 } },
    );
  }
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
