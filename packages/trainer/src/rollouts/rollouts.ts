import { createHash } from "node:crypto";
import { canonicalJson, type Outcome, PlatformError, type RolloutRequest, type RolloutsRequest } from "@aenv/contract";
import { configDigestOf } from "@aenv/rollout";
import type { Caller, Hub, ModelPolicy } from "@aenv/server/trainer-services";
import { assertPlayable } from "./admission.ts";
import { Breaks } from "./breaks.ts";
import { inGroups } from "./in-groups.ts";
import { RolloutTable, type RolloutTableOptions } from "./rollout-table.ts";
import { keyOf, LARGE_REQUEST, maySee, placeRequest, type RolloutRow, type RolloutWork } from "./row.ts";
import { MAX_REQUEST_BYTES } from "./sizes.ts";
import type { OpenResult } from "./stored-results.ts";
import { UnfinishedCapacity, type UnfinishedLimits } from "./unfinished-capacity.ts";
import { RolloutWorker, type RolloutWorkerOptions } from "./worker.ts";

/** A rollout of a request. */
interface Wanted {
  readonly key: string;
  readonly request: RolloutRequest;
  /** Digest of the request and its run, to detect the same id with another request. */
  readonly digest: string;
  readonly bytes: number;
}

interface ResolvedEnvironment extends Pick<RolloutWork, "environment" | "environmentDigest"> {
  readonly deployConfig: Readonly<Record<string, unknown>>;
}

export interface RolloutsOptions extends RolloutTableOptions, RolloutWorkerOptions, UnfinishedLimits {
  readonly hub: Hub;
  readonly policy: ModelPolicy;
  readonly onDone: (outcome: Outcome) => void;
}

/** Accepts rollouts and shows their results. A rollout is a row first: any server that shares the store may play it. */
export class Rollouts {
  readonly #options: RolloutsOptions;
  readonly #table: RolloutTable;
  readonly #worker: RolloutWorker;
  readonly #unfinished: UnfinishedCapacity;
  readonly #listeners = new Set<(key: string) => void>();

  constructor(options: RolloutsOptions) {
    this.#options = options;
    this.#table = new RolloutTable(options, (key, outcome) => {
      options.onDone(outcome);
      for (const listener of this.#listeners) listener(key);
    });
    this.#worker = new RolloutWorker(options, this.#table);
    this.#unfinished = new UnfinishedCapacity(this.#table, options);
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
    const wanted = await this.#wanted(rollouts, run, caller.owner);
    const missing: Wanted[] = [];
    await inGroups([...wanted.values()], async (one) => {
      const known = await this.#table.find(one.key);
      if (known === null) missing.push(one);
      else if (!maySee(known, caller) || known.digest !== one.digest) throw conflict(one.request.id);
      else if (known.state === "queued") await this.#table.restoreRequest(one.key, known, one.request);
    });
    if (missing.length > 0) await this.#accept(missing, run, caller);
    return rollouts.map(({ id }) => keyOf(caller.owner, id));
  }

  /** The rollouts of a request by their keys. Throws if one cannot be played. */
  async #wanted(rollouts: readonly RolloutRequest[], run: string | null, owner: string): Promise<ReadonlyMap<string, Wanted>> {
    const wanted = new Map<string, Wanted>();
    const breaks = new Breaks();
    for (const request of rollouts) {
      assertPlayable(request, this.#options.policy);
      const key = keyOf(owner, request.id);
      // Independent of the order of the fields.
      const text = canonicalJson({ run, request });
      const bytes = Buffer.byteLength(text);
      if (bytes > MAX_REQUEST_BYTES) throw tooLarge(request.id, bytes);
      const digest = createHash("sha256").update(text).digest("hex");
      if ((wanted.get(key)?.digest ?? digest) !== digest) throw conflict(request.id);
      wanted.set(key, { key, request, digest, bytes });
      await breaks.take();
    }
    return wanted;
  }

  async #accept(missing: readonly Wanted[], run: string | null, caller: Caller): Promise<void> {
    const environments = await this.#resolve(
      missing.map(({ request }) => request.environment),
      caller,
    );
    const { owner, roles, ...rest } = caller;
    const reserved = await this.#unfinished.reserve(
      owner,
      missing.map(({ bytes }) => bytes),
    );
    try {
      const accept = async ({ key, request, digest, bytes }: Wanted) => {
        const { deployConfig, ...resolved } = environments.get(request.environment) as ResolvedEnvironment;
        const configDigest = configDigestOf(deployConfig, request.variables);
        const { request: inRow, ...placed } = placeRequest(key, request, bytes);
        const row: RolloutRow = {
          id: request.id,
          owner,
          run,
          environment: resolved.environment,
          digest,
          state: "queued",
          work: { request: inRow, ...resolved, configDigest, caller: { ...rest, roles: [...roles] } },
          ...placed,
          lease: null,
          attempt: 0,
          losses: 0,
          createdAt: this.#options.now().toISOString(),
          done: null,
        };
        const isNew = await this.#table.insert(key, row, request);
        reserved.release(bytes);
        if (isNew) return this.#worker.offer(key, row);
        const known = await this.#table.find(key);
        if (known !== null && known.digest !== digest) throw conflict(request.id);
      };
      const { small = [], large = [] } = Object.groupBy(missing, ({ bytes }) => (bytes > LARGE_REQUEST ? "large" : "small"));
      await inGroups(small, accept);
      // They are written one at a time: many would block the process.
      await inGroups(large, accept, 1);
    } finally {
      reserved.releaseAll();
    }
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
  resultOf(row: RolloutRow): Promise<OpenResult | null> {
    return this.#table.resultOf(row);
  }

  /** Rollouts of the caller in the order of their ids. */
  async list(query: { run?: string | undefined; after?: string | undefined; limit: number }, caller: Caller): Promise<RolloutRow[]> {
    const { run, after, limit } = query;
    const { owner } = caller;
    const where = run === undefined ? { index: "owner", value: owner } : { index: "run", value: `${owner}/${run}` };
    const seen: RolloutRow[] = [];
    const breaks = new Breaks();
    for (let from = after === undefined ? undefined : keyOf(owner, after); ; ) {
      const rows = await this.#table.list({ where, limit, ...(from !== undefined && { after: from }) });
      for (const { value } of rows) if (seen.length < limit && maySee(value, caller)) seen.push(value);
      from = rows.at(-1)?.key;
      if (seen.length >= limit || rows.length < limit) return seen;
      await breaks.take();
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
    if (this.#table.isSweepDue) await this.sweep();
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
}

function tooLarge(id: string, bytes: number): PlatformError {
  return new PlatformError(
    "request.too_large",
    `rollout '${id}' has ${bytes} bytes, more than the ${MAX_REQUEST_BYTES} of one rollout; leave large data with the trainer, or put it in files of the environment`,
    { details: { maxBytes: MAX_REQUEST_BYTES } },
  );
}

function conflict(id: string): PlatformError {
  return new PlatformError("request.conflict", `rollout '${id}' was requested before with another body; use a new id, or the same body`);
}

function notFound(id: string): PlatformError {
  return new PlatformError("rollout.not_found", `there is no rollout '${id}'; its result may have been removed`);
}
