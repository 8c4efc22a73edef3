import { randomBytes, randomInt } from "node:crypto";
import { type CreateInstanceRequest, type InstanceStatus, isPlatformError, messageOf, PlatformError, parseDuration } from "@aenv/contract";
import type { Caller } from "../access/access.ts";
import type { FairQueue } from "../access/fair-queue.ts";
import type { Quotas } from "../access/quotas.ts";
import type { EnvironmentVersion, Hub } from "../hub/hub.ts";
import type { Collection } from "../stores/collection.ts";
import { Alarms } from "./alarms.ts";
import { dueNow, dueOf } from "./expiry.ts";
import type { Idempotency } from "./idempotency.ts";
import type { Opening, Placement } from "./placement.ts";
import { type InstanceRow, isLive, moved, noted, type Seat } from "./row.ts";

export interface InstancesOptions {
  readonly rows: Collection<InstanceRow>;
  readonly idempotency: Idempotency;
  readonly hub: Hub;
  readonly quotas: Quotas;
  readonly queue: FairQueue;
  readonly placement: Placement;
  readonly replica: string;
  readonly defaultTtl: string;
  readonly defaultIdleSeconds: number | null;
  readonly now: () => Date;
  /** Told of every change, so that the gateway's memory and the metrics stay true. */
  readonly onChange: (row: InstanceRow) => void;
}

/** Who asks, and how long they will wait. */
export interface Asking {
  readonly caller: Caller;
  readonly signal: AbortSignal;
  readonly idempotencyKey?: string;
}

/** No start takes longer that anyone still waits for. */
const START_LIMIT_MS = 120_000;

const LIVE: readonly InstanceStatus[] = ["Pending", "Creating", "Running"];

/** The running environments: each is a row first and a box second, so that nothing runs unseen. */
export class Instances {
  readonly #options: InstancesOptions;
  readonly #alarms: Alarms;
  /** Starts in progress here, for those who wait for one. */
  readonly #starting = new Map<string, Promise<InstanceRow>>();
  #isDraining = false;

  constructor(options: InstancesOptions) {
    this.#options = options;
    this.#alarms = new Alarms(
      (id) => void this.#onAlarm(id).catch(() => {}),
      () => options.now().getTime(),
    );
  }

  /** Writes the row, then starts the instance; answers at once with the row and with the start to wait for. */
  async create(request: CreateInstanceRequest, asking: Asking): Promise<{ row: InstanceRow; started: Promise<InstanceRow> }> {
    this.#demandOpen();
    const { hub, idempotency } = this.#options;
    if (request.envName === undefined || request.envName === "") {
      throw new PlatformError("request.invalid", "Invalid request parameters: envName is missing; give 'name' or 'name@version'");
    }
    const environment = await hub.resolve(request.envName, asking.caller);
    const owner = this.#ownerOf(request, asking.caller);
    const fresh = this.#draw(environment, request, owner);
    if (asking.idempotencyKey === undefined) return this.#begin(environment, request, fresh, asking.caller);

    const reserved = await idempotency.reserve(owner, asking.idempotencyKey, request, fresh.id);
    const known = await this.#options.rows.find(reserved.instanceId);
    if (known !== null) return { row: known.value, started: this.#again(known.value, asking.caller) };
    return this.#begin(environment, request, { ...fresh, id: reserved.instanceId }, asking.caller);
  }

  /** What the first request with the same key was answered, or will be. */
  async #again(row: InstanceRow, caller: Caller): Promise<InstanceRow> {
    const started = this.#starting.get(row.id);
    if (started !== undefined) return started;
    const settled = await this.untilStarted(row.id, START_LIMIT_MS, caller);
    if (settled.status === "Failed") throw new PlatformError(settled.reasonCode ?? "instance.failed", settled.reason ?? "the start failed");
    return settled;
  }

  async get(id: string, caller: Caller): Promise<InstanceRow> {
    const row = await this.#options.rows.find(id);
    if (row === null || !maySee(row.value, caller)) throw new PlatformError("instance.not_found", `instance '${id}' not found`);
    return row.value;
  }

  /** The row once its start is decided, or as it stands when the time is over. */
  async untilStarted(id: string, limitMs: number, caller: Caller): Promise<InstanceRow> {
    const over = this.#options.now().getTime() + limitMs;
    for (;;) {
      const row = await this.get(id, caller);
      const left = over - this.#options.now().getTime();
      if ((row.status !== "Pending" && row.status !== "Creating") || left <= 0) return row;
      // A start of ours tells us; one on another replica is looked at now and then.
      await Promise.race([this.#starting.get(id)?.catch(() => {}) ?? pause(Math.min(left, 100)), pause(left)]);
    }
  }

  /** Ends an instance. Ending one that has ended is no error. */
  async destroy(id: string, caller: Caller): Promise<void> {
    await this.get(id, caller);
    await this.end(id, "deleted by its owner");
  }

  async renew(id: string, ttl: string, caller: Caller): Promise<InstanceRow> {
    await this.get(id, caller);
    const ms = parseTtl(ttl);
    return this.#change(id, (row, now) =>
      isLive(row) ? { ...noted(row, `renewed for ${ttl}`, now), ttl, expiresAt: new Date(now.getTime() + ms).toISOString() } : null,
    );
  }

  /** Asks a running instance's box, and notes it if it matters to the story. */
  async ask(id: string, caller: Caller, method: "GET" | "POST", path: string, body: unknown, note?: string): Promise<unknown> {
    const row = await this.get(id, caller);
    const answer = await this.#options.placement.ask(seatOf(row), method, path, body);
    if (note !== undefined) await this.#change(id, (now, at) => noted(now, note, at));
    return answer;
  }

  /** Copies that go on from where the instance stands. In a shared process they sit beside it, else each gets its own. */
  async fork(id: string, count: number, asking: Asking): Promise<InstanceRow[]> {
    this.#demandOpen();
    const parent = await this.get(id, asking.caller);
    const seat = seatOf(parent);
    const { hub, placement } = this.#options;
    const environment = await hub.resolve(`${parent.environment.name}@${parent.environment.version}`, asking.caller);
    this.#options.quotas.admitCreate(parent.owner, count);
    const drawn = Array.from({ length: count }, () => this.#drawFork(parent));
    const written: InstanceRow[] = [];
    try {
      for (const row of drawn) {
        await this.#insert(row, asking.caller);
        written.push(row);
      }
      if (!seat.isOwnBox) {
        const seats = await placement.forkBeside(
          id,
          seat,
          drawn.map((row) => row.id),
          asking.signal,
        );
        return await Promise.all(drawn.map((row, at) => this.#becomeRunning(row.id, seats[at] as Seat)));
      }
      const copy = await placement.openingOf(id, seat, asking.signal);
      return await Promise.all(drawn.map((row) => this.#start(environment, { ...copy, id: row.id }, row)));
    } catch (error) {
      for (const row of written) await this.end(row.id, `the fork failed: ${messageOf(error)}`, "Failed");
      throw error;
    }
  }

  /** Ends a live instance for a reason; what it occupied is given back. */
  async end(id: string, reason: string, to: "Terminated" | "Failed" = "Terminated"): Promise<void> {
    let seat: Seat | null = null;
    await this.#change(id, (row, now) => {
      seat = row.seat;
      return moved(row, LIVE, to, reason, now, { reason });
    }).catch((error: unknown) => {
      if (!isPlatformError(error, "instance.not_found")) throw error;
      seat = null;
    });
    if (seat !== null) await this.#options.placement.leave(seat, id);
  }

  /** The instances of a box that is gone fail with the cause, and only those. */
  async onBoxExit(ids: readonly string[], reason: string): Promise<void> {
    for (const id of ids) await this.#fail(id, new PlatformError("sandbox.lost", reason));
  }

  /** Looks after an instance again that an earlier process has left running. */
  async adopt(row: InstanceRow): Promise<void> {
    const { replica } = this.#options;
    await this.#change(row.id, (now, at) => (isLive(now) ? { ...noted(now, "adopted after a restart of the server", at), replica } : null));
  }

  /** A call has come: an instance that is used is not idle. Noted now and then, not for every call. */
  touch(row: InstanceRow): void {
    if (row.idleSeconds === null) return;
    const since = this.#options.now().getTime() - Date.parse(row.lastUsedAt);
    if (since < row.idleSeconds * 250) return;
    void this.#change(row.id, (now, at) => (isLive(now) ? { ...now, lastUsedAt: at.toISOString() } : null)).catch(() => {});
  }

  drain(): void {
    this.#isDraining = true;
  }

  async close(): Promise<void> {
    this.drain();
    this.#alarms.close();
    await Promise.allSettled(this.#starting.values());
  }

  async #begin(
    environment: EnvironmentVersion,
    request: CreateInstanceRequest,
    row: InstanceRow,
    caller: Caller,
  ): Promise<{ row: InstanceRow; started: Promise<InstanceRow> }> {
    this.#options.quotas.admitCreate(row.owner);
    await this.#insert(row, caller);
    const opening: Opening = {
      ...openingOf(row),
      variables: request.environment_variables ?? {},
      arguments: request.arguments ?? [],
      ...(request.snapshot !== undefined && { snapshot: request.snapshot }),
    };
    const started = this.#start(environment, opening, row).finally(() => this.#starting.delete(row.id));
    // Whoever created it may not wait; a failure is in the row then.
    started.catch(() => {});
    this.#starting.set(row.id, started);
    return { row, started };
  }

  async #start(environment: EnvironmentVersion, opening: Opening, row: InstanceRow): Promise<InstanceRow> {
    const { queue, placement } = this.#options;
    const abort = new AbortController();
    let seat: Seat;
    try {
      seat = await queue.run(row.owner, () => placement.place(environment, row.owner, opening, abort.signal));
    } catch (error) {
      await this.#fail(row.id, error);
      throw error;
    }
    return this.#becomeRunning(row.id, seat);
  }

  /** Notes why it failed, unless it has ended already. */
  async #fail(id: string, error: unknown): Promise<void> {
    const reason = messageOf(error);
    const reasonCode = isPlatformError(error) ? error.code : "instance.start_failed";
    await this.#change(id, (row, now) => moved(row, LIVE, "Failed", reason, now, { reason, reasonCode })).catch(() => {});
  }

  async #becomeRunning(id: string, seat: Seat): Promise<InstanceRow> {
    try {
      return await this.#change(id, (row, now) => moved(row, ["Pending", "Creating"], "Running", "running", now, { seat }));
    } catch (error) {
      // It was ended while it started: what has started late is ended again.
      await this.#options.placement.leave(seat, id);
      throw error;
    }
  }

  async #insert(row: InstanceRow, caller: Caller): Promise<void> {
    const max = Math.min(this.#options.quotas.instanceLimit(row.owner), caller.maxInstances ?? Number.MAX_SAFE_INTEGER);
    const inserted = await this.#options.rows.insert(row.id, row, { limit: { index: "liveOwner", value: row.owner, max } });
    if (inserted === "limit") {
      throw new PlatformError("quota.exceeded", `Instance count exceeds limit: ${max}; end some, or ask for more`, {
        details: { owner: row.owner, limit: max, retryAfterSeconds: 5 },
      });
    }
    if (inserted === "exists") throw new PlatformError("instance.exists", `instance '${row.id}' is there already`);
    this.#changed(row);
  }

  /** Changes a row; an error if it is gone or does not stand where the change wants it. */
  async #change(id: string, change: (row: InstanceRow, now: Date) => InstanceRow | null): Promise<InstanceRow> {
    const next = await this.#options.rows.update(id, (row) => change(row, this.#options.now()));
    if (next === null) throw new PlatformError("instance.not_found", `instance '${id}' not found, or it has ended`);
    this.#changed(next);
    return next;
  }

  #changed(row: InstanceRow): void {
    this.#alarms.set(row.id, dueOf(row).at);
    this.#options.onChange(row);
  }

  async #onAlarm(id: string): Promise<void> {
    const row = await this.#options.rows.find(id);
    if (row === null) return;
    switch (dueNow(row.value, this.#options.now())) {
      case "forget":
        await this.#options.rows.remove(id, row.rev);
        return;
      case "expire":
        return this.end(id, `its time to live of ${row.value.ttl} was over`);
      case "idle":
        return this.end(id, `it was idle for ${row.value.idleSeconds} s`);
      case null:
        this.#alarms.set(id, dueOf(row.value).at);
    }
  }

  #draw(environment: EnvironmentVersion, request: CreateInstanceRequest, owner: string): InstanceRow {
    const { defaultTtl, defaultIdleSeconds, now, replica } = this.#options;
    const ttl = request.ttl || environment.config.deployConfig?.ttl || defaultTtl;
    const at = now();
    const since = at.toISOString();
    return {
      id: newId(environment.name),
      agentKey: newKey(),
      owner,
      environment: { name: environment.name, version: environment.version },
      digest: environment.bundleDigest ?? "",
      status: "Creating",
      reason: null,
      reasonCode: null,
      createdAt: since,
      updatedAt: since,
      expiresAt: new Date(at.getTime() + parseTtl(ttl)).toISOString(),
      ttl,
      idleSeconds: defaultIdleSeconds,
      lastUsedAt: since,
      labels: request.labels ?? {},
      task: request.task ?? null,
      seed: request.seed ?? randomInt(2 ** 31),
      datasource: request.datasource ?? "",
      seat: null,
      replica,
      events: [{ at: since, what: "asked for" }],
    };
  }

  #drawFork(parent: InstanceRow): InstanceRow {
    const since = this.#options.now().toISOString();
    return {
      ...parent,
      id: newId(parent.environment.name),
      agentKey: newKey(),
      status: "Creating",
      createdAt: since,
      updatedAt: since,
      lastUsedAt: since,
      seat: null,
      replica: this.#options.replica,
      events: [{ at: since, what: `forked from ${parent.id}` }],
    };
  }

  /** With access on, an owner is who the token says; without, whoever the request names. */
  #ownerOf(request: CreateInstanceRequest, caller: Caller): string {
    return caller.tokenId === null && request.owner ? request.owner : caller.owner;
  }

  #demandOpen(): void {
    if (this.#isDraining) throw new PlatformError("server.draining", "this server is shutting down; ask another, or later");
  }
}

/** One owner's instance is another's 404. */
export function maySee(row: InstanceRow, caller: Caller): boolean {
  return caller.roles.has("admin") || row.owner === caller.owner;
}

function seatOf(row: InstanceRow): Seat {
  if (row.status === "Running" && row.seat !== null) return row.seat;
  if (row.status === "Creating" || row.status === "Pending")
    throw new PlatformError("instance.starting", `instance '${row.id}' is still starting`);
  if (row.status === "Failed") throw new PlatformError("instance.failed", `instance '${row.id}' has failed: ${row.reason}`);
  throw new PlatformError("instance.gone", `instance '${row.id}' has ended: ${row.reason}`);
}

function openingOf(row: InstanceRow): Opening {
  return { id: row.id, task: row.task, seed: row.seed, variables: {}, arguments: [] };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

function parseTtl(ttl: string): number {
  const ms = parseDuration(ttl);
  if (ms > 0) return ms;
  throw new PlatformError("request.invalid", `ttl is '${ttl}'; it must be longer than nothing, such as 30m`);
}

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

/** 100 random bits: who knows the key may use what it opens. */
function newKey(): string {
  return [...randomBytes(20)].map((byte) => ALPHABET[byte & 31]).join("");
}

/** Short enough for a DNS label, so that it may also name a pod. */
function newId(name: string): string {
  return `${name.slice(0, 42).replace(/-+$/, "")}-${newKey()}`;
}
