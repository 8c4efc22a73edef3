import { setTimeout as delay } from "node:timers/promises";
import { messageOf, PlatformError } from "@aenv/contract";
import { Cluster, type CommonRedisOptions, Redis } from "ioredis";
import { describeAddress, type RedisAddress } from "./address.ts";

export interface ConnectionOptions {
  /** How long Redis may be unreachable before calls fail; 10 s covers a restart or a failover. */
  readonly outageMs?: number;
}

const CONNECT_TIMEOUT_MS = 5_000;
const PING_TIMEOUT_MS = 2_000;

/** Replies that mean that nothing was done and that a retry may succeed; MOVED and ASK only from a cluster. */
const TEMPORARY = /^(?:LOADING|READONLY|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|BUSY) /;
const REDIRECTED = /^(?:MOVED|ASK) /;
/** The client's error message for a command that was not sent. */
const NOT_SENT = /enableOfflineQueue/;
/** Errors of the client that only mean "no connection"; an earlier error has the reason. */
const WITHOUT_REASON = /enableOfflineQueue|^(?:Connection is closed|Reached the max retries|Command aborted|Failed to refresh slots)/;

/**
 * A client that reconnects automatically, and the only place that decides what is sent again.
 *
 * The client itself queues and repeats nothing while Redis is unreachable: a command must not run long after its caller
 * gave up. Instead `run` repeats commands until Redis has been unreachable for `outageMs`. If a connection breaks before the
 * reply, it is unknown whether the command ran, so `run` is only for commands that may run twice: reads, and changes with a
 * receipt.
 */
export class RedisConnection {
  readonly #client: Redis | Cluster;
  readonly #where: string;
  readonly #outageMs: number;
  /** How long a receipt is kept: longer than a change is repeated, including its last repetition in flight. */
  readonly receiptMs: number;
  readonly #closing = new AbortController();
  #lostAt: number | null = null;
  #lastError = "no response";

  static async open(address: RedisAddress, { outageMs = 10_000 }: ConnectionOptions = {}): Promise<RedisConnection> {
    const connection = new RedisConnection(address, outageMs);
    try {
      await connection.#client.connect();
      await connection.#refuseEviction();
      return connection;
    } catch (error) {
      connection.#client.disconnect();
      throw error instanceof PlatformError ? error : connection.#unavailable();
    }
  }

  private constructor(address: RedisAddress, outageMs: number) {
    this.#where = describeAddress(address);
    this.#outageMs = outageMs;
    this.receiptMs = 2 * outageMs + 40_000;
    this.#client = createClient(address);
    for (const event of ["error", "node error"]) this.#client.on(event, (error: unknown) => this.#recordError(error));
    this.#client.on("close", () => {
      this.#lostAt ??= performance.now();
    });
    this.#client.on("ready", () => {
      this.#lostAt = null;
      this.#lastError = "the connection broke";
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
        if (isReply(error) && !this.#isTemporary(error)) throw this.#refused(error);
        mayHaveChanged ||= does === "changes" && !isReply(error) && !NOT_SENT.test(messageOf(error));
        this.#recordError(error);
        const now = performance.now();
        if (now - (this.#lostAt ?? startedAt) > this.#outageMs || now - startedAt > this.#outageMs) throw this.#unavailable(mayHaveChanged);
      }
      await delay(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => {});
    }
  }

  /** Does not wait for a reconnect. */
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
      this.#recordError(error);
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

  /** A Redis that evicts keys when it is full would lose rows silently. */
  async #refuseEviction(): Promise<void> {
    const info = await this.#client.info("memory").catch(() => "");
    const policy = /^maxmemory_policy:(allkeys-\S+)/m.exec(info)?.[1];
    if (policy === undefined) return;
    const advice = "set maxmemory-policy to noeviction, or use another Redis";
    throw new PlatformError("store.invalid", `${this.#where} evicts keys when it is full (maxmemory-policy ${policy}): ${advice}`);
  }

  #recordError(error: unknown): void {
    const message = messageOf(error).replace(/\.$/, "");
    if (!WITHOUT_REASON.test(message)) this.#lastError = message.startsWith("All sentinels") ? "no sentinel answers" : message;
  }

  #isTemporary(reply: Error): boolean {
    return TEMPORARY.test(reply.message) || (this.#client instanceof Cluster && REDIRECTED.test(reply.message));
  }

  /** Without the client's error as cause: it contains the command with its values and passwords. */
  #unavailable(mayHaveChanged = false): PlatformError {
    const doubt = mayHaveChanged ? "; the change may have been made" : "";
    const message = `${this.#where} cannot be reached: ${this.#lastError}${doubt}. Check that it runs and is reachable from this machine`;
    return new PlatformError("store.unavailable", message, { details: { mayHaveChanged } });
  }

  #refused(error: Error): PlatformError {
    return new PlatformError("store.unavailable", `${this.#where} refused a command: ${error.message}`);
  }

  #closed(mayHaveChanged = false): PlatformError {
    return new PlatformError("store.unavailable", `the connection to ${this.#where} is closed`, { details: { mayHaveChanged } });
  }
}

/** An error reply of Redis, as opposed to a connection error. */
function isReply(error: unknown): error is Error {
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
    // A connection that is silent for this long is considered dead.
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
        // An attempt continues where the last one stopped; it fails after one more round over all sentinels.
        sentinelRetryStrategy: (round) => (round === 1 ? 0 : null),
      });
    }
    case "cluster":
      // Without a retry strategy for nodes the client drops a restarting node, and finds it again late or never.
      return new Cluster([...hosts], { redisOptions, ...common, clusterRetryStrategy: pause, clusterNodeRetryStrategy: pause });
  }
}
