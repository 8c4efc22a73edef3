import { setTimeout as delay } from "node:timers/promises";
import { messageOf, PlatformError } from "@aenv/contract";
import { Cluster, type CommonRedisOptions, Redis } from "ioredis";
import { describeAddress, type RedisAddress } from "./address.ts";

export interface ConnectionOptions {
  /** How long Redis may be away before calls fail; 10 s bridges a restart or a failover. */
  readonly patienceMs?: number;
}

const CONNECT_TIMEOUT_MS = 5_000;
const PING_TIMEOUT_MS = 2_000;

/** Answers that say "not now", or "not here" to a cluster's client: nothing was done, and soon it may work. */
const NOT_NOW = /^(?:LOADING|READONLY|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|BUSY) /;
const NOT_HERE = /^(?:MOVED|ASK) /;
/** The client's own words for a command that never left. */
const NOT_SENT = /enableOfflineQueue/;
/** What the client says of a command when there is no connection; why there is none was said before. */
const SAYS_NOTHING = /enableOfflineQueue|^(?:Connection is closed|Reached the max retries|Command aborted|Failed to refresh slots)/;

/**
 * A client that comes back by itself, and the one place that decides what to send again.
 *
 * The client itself queues nothing while Redis is away and repeats nothing: a command must not run long after its caller
 * gave up. `run` repeats instead, for as long as Redis has been away for less than our patience. When a connection breaks
 * before an answer, nobody knows whether the command ran, so only commands that may run twice are given to `run`: reads, and
 * changes that leave a receipt.
 */
export class RedisConnection {
  readonly #client: Redis | Cluster;
  readonly #where: string;
  readonly #patienceMs: number;
  /** How long a change's receipt must be kept: longer than the change is ever repeated, and than its last repetition is underway. */
  readonly receiptMs: number;
  readonly #closing = new AbortController();
  #lostAt: number | null = null;
  #lastTrouble = "nothing answers there";

  static async open(address: RedisAddress, { patienceMs = 10_000 }: ConnectionOptions = {}): Promise<RedisConnection> {
    const connection = new RedisConnection(address, patienceMs);
    try {
      await connection.#client.connect();
      await connection.#refuseEviction();
      return connection;
    } catch (error) {
      connection.#client.disconnect();
      throw error instanceof PlatformError ? error : connection.#unavailable();
    }
  }

  private constructor(address: RedisAddress, patienceMs: number) {
    this.#where = describeAddress(address);
    this.#patienceMs = patienceMs;
    this.receiptMs = 2 * patienceMs + 40_000;
    this.#client = createClient(address);
    for (const event of ["error", "node error"]) this.#client.on(event, (error: unknown) => this.#note(error));
    this.#client.on("close", () => {
      this.#lostAt ??= performance.now();
    });
    this.#client.on("ready", () => {
      this.#lostAt = null;
      this.#lastTrouble = "the connection broke";
    });
  }

  /** `send` may be called more than once, see above. */
  async run<T>(does: "reads" | "changes", send: (client: Redis | Cluster) => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    let mayHaveChanged = false;
    for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, 200)) {
      if (this.#closing.signal.aborted) throw this.#closed(mayHaveChanged);
      try {
        return await send(this.#client);
      } catch (error) {
        if (isAnswer(error) && !this.#mayPass(error)) throw this.#refused(error);
        mayHaveChanged ||= does === "changes" && !isAnswer(error) && !NOT_SENT.test(messageOf(error));
        this.#note(error);
        const now = performance.now();
        if (now - (this.#lostAt ?? startedAt) > this.#patienceMs || now - startedAt > this.#patienceMs)
          throw this.#unavailable(mayHaveChanged);
      }
      await delay(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => {});
    }
  }

  /** Does not wait for Redis to come back. */
  async ping(): Promise<void> {
    if (this.#closing.signal.aborted) throw this.#closed();
    if (this.#client.status !== "ready") throw this.#unavailable();
    const timer = new AbortController();
    try {
      await Promise.race([
        this.#client.ping(),
        delay(PING_TIMEOUT_MS, undefined, { signal: timer.signal }).then(() => {
          throw new Error(`no answer within ${PING_TIMEOUT_MS / 1000} s`);
        }),
      ]);
    } catch (error) {
      this.#note(error);
      throw this.#unavailable();
    } finally {
      timer.abort();
    }
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    if (this.#client.status === "ready") await Promise.race([this.#client.quit(), delay(1_000, undefined, { ref: false })]).catch(() => {});
    this.#client.disconnect();
  }

  /** A Redis that throws keys away when it is full would lose rows without a word. */
  async #refuseEviction(): Promise<void> {
    const info = await this.#client.info("memory").catch(() => "");
    const policy = /^maxmemory_policy:(allkeys-\S+)/m.exec(info)?.[1];
    if (policy === undefined) return;
    const advice = "set maxmemory-policy to noeviction, or use another Redis";
    throw new PlatformError("store.invalid", `${this.#where} throws any key away when it is full (maxmemory-policy ${policy}): ${advice}`);
  }

  #note(error: unknown): void {
    const message = messageOf(error).replace(/\.$/, "");
    if (!SAYS_NOTHING.test(message)) this.#lastTrouble = message.startsWith("All sentinels") ? "no sentinel answers" : message;
  }

  #mayPass(answer: Error): boolean {
    return NOT_NOW.test(answer.message) || (this.#client instanceof Cluster && NOT_HERE.test(answer.message));
  }

  /** Never with the client's own error as cause: that one carries the command, values and passwords with it. */
  #unavailable(mayHaveChanged = false): PlatformError {
    const doubt = mayHaveChanged ? "; the change may have been made" : "";
    const message = `${this.#where} cannot be reached: ${this.#lastTrouble}${doubt}. Check that it runs and that this machine may reach it`;
    return new PlatformError("store.unavailable", message, { details: { mayHaveChanged } });
  }

  #refused(error: Error): PlatformError {
    return new PlatformError("store.unavailable", `${this.#where} refused a command: ${error.message}`);
  }

  #closed(mayHaveChanged = false): PlatformError {
    return new PlatformError("store.unavailable", `the connection to ${this.#where} is closed`, { details: { mayHaveChanged } });
  }
}

/** An error that Redis itself sent, as opposed to one of the way there. */
function isAnswer(error: unknown): error is Error {
  return error instanceof Error && error.name === "ReplyError";
}

function createClient(address: RedisAddress): Redis | Cluster {
  const { username, password, hosts, isTls } = address;
  const pause = (attempt: number) => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000) + Math.random() * 50;
  const redisOptions = {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(isTls && { tls: {} }),
    connectTimeout: CONNECT_TIMEOUT_MS,
    // A connection that has nothing to say for so long is dead, whatever the system thinks.
    socketTimeout: CONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    reconnectOnError: (error) => error.message.startsWith("READONLY"),
  } satisfies CommonRedisOptions & { tls?: object };
  const common = { lazyConnect: true, enableAutoPipelining: true, enableOfflineQueue: false };
  switch (address.mode) {
    case "single":
      return new Redis({ ...redisOptions, ...common, ...hosts[0], db: address.db, retryStrategy: pause });
    case "sentinel": {
      const { db, group, sentinelPassword } = address;
      return new Redis({
        ...redisOptions,
        ...common,
        sentinels: [...hosts],
        name: group,
        db,
        ...(sentinelPassword !== undefined && { sentinelPassword }),
        ...(isTls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
        retryStrategy: pause,
        // An attempt begins where the last one stopped; after one more whole round over the sentinels it has failed, like any other.
        sentinelRetryStrategy: (round) => (round === 1 ? 0 : null),
      });
    }
    case "cluster":
      // Without a strategy for nodes the client forgets one that restarts, and finds it again late or never.
      return new Cluster([...hosts], { redisOptions, ...common, clusterRetryStrategy: pause, clusterNodeRetryStrategy: pause });
  }
}
