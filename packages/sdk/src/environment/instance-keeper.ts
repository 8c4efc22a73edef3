import { type InstanceRecord, isPlatformError, messageOf } from "@aenv/contract";
import type { Clock } from "../async/clock.ts";
import { SharedTask } from "../async/shared-task.ts";
import { untilAborted } from "../async/until-aborted.ts";
import { EnvironmentError } from "../errors/errors.ts";
import type { JsonClient } from "../http/json-client.ts";
import type { Addresses } from "../platform/addresses.ts";
import type { CreateResult } from "../platform/create-batch.ts";
import type { SchedulerClient } from "../platform/scheduler-client.ts";
import { waitUntilHealthy } from "./health.ts";
import { agentUrlOf, foundInstance, type HeldInstance, isTokenWithheld, madeInstance, warningsOf } from "./held-instance.ts";
import type { Logger } from "./logger.ts";
import { type EnvironmentOptions, pollInterval, toCreateRequest } from "./options.ts";

export interface KeeperOptions {
  readonly ref: string;
  readonly addresses: Addresses;
  readonly options: EnvironmentOptions;
  readonly scheduler: SchedulerClient;
  readonly client: JsonClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timeoutMs: number;
  /** Sent to a data port that requires one and is known to be the platform's; empty for none. */
  readonly token: string;
}

const STARTUP_TIMEOUT_MS = 500_000;
const HEALTH_TIMEOUT_MS = { remote: 300_000, local: 30_000 };
/** An environment on this machine that is not there by then will not come by itself; the caller hears of it within a second. */
export const REFUSED_LIMIT_MS = 600;

/** Opens one instance for all who ask at the same time, and sees to it that none is left behind. */
export class InstanceKeeper {
  readonly #to: KeeperOptions;
  #held: HeldInstance | null = null;
  #opening: SharedTask<HeldInstance> | null = null;
  #isReleased = false;
  #isFork = false;
  /** Instances that are being ended, also those whose creation was answered after everyone had given up. */
  readonly #endings = new Set<Promise<void>>();

  constructor(options: KeeperOptions) {
    this.#to = options;
  }

  get held(): HeldInstance | null {
    return this.#held;
  }

  /**
   * Creates the instances of several keepers by one request; each is its own keeper's from then on. Throws if the server
   * could not be asked at all, or the signal aborts.
   */
  static async openAll(keepers: readonly InstanceKeeper[], signal: AbortSignal | undefined): Promise<PromiseSettledResult<HeldInstance>[]> {
    const [first] = keepers;
    if (first === undefined) return [];
    signal?.throwIfAborted();
    const { scheduler, clock, options } = first.#to;
    const deadlineAt = clock.now() + (options.startupTimeoutMs ?? STARTUP_TIMEOUT_MS);
    const requests = keepers.map((keeper) => toCreateRequest(keeper.#to.ref, keeper.#to.options));
    const creating = scheduler.createInstances(requests, { deadlineAt });
    const made = keepers.map((_, at) => creating.then((results) => recordOf(results[at])));
    const opened = await Promise.allSettled(keepers.map((keeper, at) => keeper.open(signal, true, made[at])));
    signal?.throwIfAborted();
    const [one] = opened;
    await creating.catch((error) => Promise.reject(one?.status === "rejected" ? one.reason : error));
    return opened;
  }

  /** The instance, opened if need be; after a release only on explicit wish, lest a stray call opens one that nobody ends. */
  async open(signal: AbortSignal | undefined, mayReopen = false, made?: Promise<InstanceRecord>): Promise<HeldInstance> {
    if (this.#held !== null) return this.#held;
    signal?.throwIfAborted();
    if (this.#isReleased && (this.#isFork || !mayReopen)) {
      const { ref: envName } = this.#to;
      const next = this.#isFork ? "fork again" : "call initialize() to open it again";
      throw new EnvironmentError(`environment '${envName}' was released; ${next}`, {
        code: "instance.not_found",
        envName,
      });
    }
    this.#isReleased = false;
    this.#opening ??= new SharedTask((opening) => this.#open(opening, made));
    return this.#opening.join(signal);
  }

  /** Takes a fork of another's instance; from now on it is ended here. */
  adopt(held: HeldInstance): void {
    this.#isFork = true;
    this.#held = held;
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    const opening = this.#opening;
    opening?.abort(new EnvironmentError(`environment '${this.#to.ref}' was released while it was starting`, { code: "request.cancelled" }));
    await opening?.settled();
    const held = this.#held;
    this.#held = null;
    if (held !== null) this.#end(held);
    await Promise.all(this.#endings);
  }

  async fork(count: number, signal: AbortSignal | undefined): Promise<HeldInstance[]> {
    const { scheduler, addresses, clock, timeoutMs, token } = this.#to;
    const { controlId } = await this.open(signal);
    const forking = scheduler.forkInstance(controlId, count, { deadlineAt: clock.now() + timeoutMs });
    const records = await this.#orDiscard(forking, signal);
    const copies = records.map((record) => madeInstance(addresses, record, token));
    try {
      if (copies.length !== count)
        throw new EnvironmentError(`asked for ${count} forks, got ${copies.length}`, { code: "instance.start_failed" });
      return await Promise.all(copies.map((copy) => this.#untilRunning(copy, STARTUP_TIMEOUT_MS, signal)));
    } catch (error) {
      for (const copy of copies) this.#end(copy);
      throw error;
    }
  }

  async presignUrl(port: number, minutes: number | undefined, signal: AbortSignal | undefined): Promise<string> {
    const { addresses, scheduler, ref, clock, timeoutMs } = this.#to;
    if (addresses.mode === "local") {
      throw new EnvironmentError(`there is no link to port ${port} of '${ref}': only a platform makes links; its sandbox is this machine`, {
        code: "instance.unsupported",
        envName: ref,
      });
    }
    const { controlId } = await this.open(signal);
    const deadlineAt = clock.now() + timeoutMs;
    return scheduler.presignUrl(controlId, port, { signal, deadlineAt, ...(minutes !== undefined && { minutes }) });
  }

  /** Waits until the open instance runs and is healthy. */
  async waitForReady(timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
    const held = await this.open(signal);
    const { addresses, scheduler, options } = this.#to;
    const needsAddress = options.dataPlane !== false;
    if (addresses.mode === "remote") {
      const interval = pollInterval(options.pollIntervalMs);
      await scheduler.waitForStatus(held.controlId, "Running", { timeoutMs, interval, signal, needsAddress });
    }
    if (needsAddress) await this.#untilHealthy(held, timeoutMs, signal);
  }

  /** `made` is an instance that was asked for elsewhere; without it one is created here. */
  async #open(signal: AbortSignal, made: Promise<InstanceRecord> | undefined): Promise<HeldInstance> {
    const { ref, options, addresses, logger, token } = this.#to;
    let held: HeldInstance | null = null;
    try {
      held = addresses.mode === "local" ? foundInstance(addresses, new Date(), token) : await this.#create(addresses, signal, made);
      if (options.dataPlane !== false && isTokenWithheld(addresses, held)) throw this.#withheld(held);
      // What our platform calls running has answered its health check.
      if (options.dataPlane !== false && options.skipHealthCheck !== true && agentUrlOf(held.record) === null) {
        const { healthTimeoutMs = HEALTH_TIMEOUT_MS[addresses.mode] } = options;
        // A caller that sets healthTimeoutMs may be waiting for a server that is still starting.
        const givesUpEarly = addresses.mode === "local" && options.healthTimeoutMs === undefined;
        await this.#untilHealthy(held, healthTimeoutMs, signal, givesUpEarly ? REFUSED_LIMIT_MS : undefined);
      }
      this.#held = held;
      this.#warn(held);
      logger.info("environment is ready", { env: ref, instance: held.record.id });
      return held;
    } catch (error) {
      const ending = held === null ? undefined : this.#end(held);
      if (signal.aborted) throw signal.reason;
      await ending;
      logger.error("environment did not start", { env: ref, error: messageOf(error) });
      throw notInitialized(ref, error);
    } finally {
      this.#opening = null;
    }
  }

  async #create(addresses: Addresses, signal: AbortSignal, made: Promise<InstanceRecord> | undefined): Promise<HeldInstance> {
    const { ref, options, scheduler, clock, logger, token } = this.#to;
    const timeoutMs = options.startupTimeoutMs ?? STARTUP_TIMEOUT_MS;
    const deadlineAt = clock.now() + timeoutMs;
    logger.info("creating an instance", { env: ref });
    const creating = made ?? scheduler.createInstance(toCreateRequest(ref, options), { deadlineAt });
    const held = madeInstance(addresses, await this.#orDiscard(creating, signal), token);
    try {
      return await this.#untilRunning(held, deadlineAt - clock.now(), signal);
    } catch (error) {
      const ending = this.#end(held);
      if (!signal.aborted) await ending;
      throw error;
    }
  }

  async #untilRunning(held: HeldInstance, timeoutMs: number, signal: AbortSignal | undefined): Promise<HeldInstance> {
    const { scheduler, options, addresses, token } = this.#to;
    const { status, ip, warnings } = held.record;
    const needsAddress = options.dataPlane !== false;
    if (status === "Running" && (ip || !needsAddress)) return held;
    const interval = pollInterval(options.pollIntervalMs);
    const record = await scheduler.waitForStatus(held.controlId, "Running", { timeoutMs, interval, signal, needsAddress });
    return madeInstance(addresses, { ...(warnings !== undefined && { warnings }), ...record }, token);
  }

  #untilHealthy(
    { url, headers }: HeldInstance,
    timeoutMs: number,
    signal: AbortSignal | undefined,
    refusedLimitMs?: number,
  ): Promise<void> {
    const { ref: envName, options, clock, client } = this.#to;
    const interval = pollInterval(options.pollIntervalMs);
    return waitUntilHealthy(client, { envName, url, headers }, { clock, timeoutMs, interval, signal, refusedLimitMs });
  }

  /** Reports what the server could not do; the instance runs without it. */
  #warn({ record }: HeldInstance): void {
    const { ref: env, options, logger } = this.#to;
    for (const warning of warningsOf(record)) {
      logger.warn("the server could not do all that it was asked to", { env, instance: record.id, warning });
      try {
        options.onWarning?.(warning);
      } catch (error) {
        logger.error("the listener of warnings threw", { env, error: messageOf(error) });
      }
    }
  }

  #withheld({ url }: HeldInstance): EnvironmentError {
    const { addresses, ref } = this.#to;
    const controlUrl = addresses.mode === "remote" ? addresses.controlUrl : "";
    return new EnvironmentError(
      `the data port at ${url} asks for a token, but it is on another host than the control API at ${controlUrl}; if it is the platform's own, name it with the option dataUrl`,
      { code: "access.denied", envName: ref },
    );
  }

  /** The answer; or, if the caller gives up first, what was made is ended as soon as it is known. */
  async #orDiscard<T extends InstanceRecord | InstanceRecord[]>(making: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await untilAborted(making, signal);
    } catch (error) {
      if (signal?.aborted) {
        const discarding = making.then(
          (made) => Promise.all([made].flat().map((record) => this.#destroy(record.id))),
          () => [],
        );
        this.#track(discarding);
      }
      throw error;
    }
  }

  #end(held: HeldInstance): Promise<void> {
    return held.isOwned ? this.#track(this.#destroy(held.controlId)) : Promise.resolve();
  }

  #track(work: Promise<unknown>): Promise<void> {
    const ending = work.then(() => {
      this.#endings.delete(ending);
    });
    this.#endings.add(ending);
    return ending;
  }

  /** An instance that cannot be deleted ends by its ttl; that is worth a warning, not the caller's result. */
  async #destroy(id: string): Promise<void> {
    const { scheduler, clock, logger, timeoutMs, ref } = this.#to;
    try {
      await scheduler.deleteInstance(id, { deadlineAt: clock.now() + timeoutMs });
      logger.info("instance released", { env: ref, instance: id });
    } catch (error) {
      logger.warn("instance could not be deleted; it ends by its ttl", { env: ref, instance: id, error: messageOf(error) });
    }
  }
}

function recordOf(result: CreateResult | undefined): InstanceRecord {
  if (result?.instance) return result.instance;
  throw result?.error ?? new EnvironmentError("the server said nothing of this instance", { code: "instance.start_failed" });
}

function notInitialized(ref: string, cause: unknown): EnvironmentError {
  const { code, retryable, details } = isPlatformError(cause) ? cause : new EnvironmentError("", { code: "instance.start_failed" });
  return new EnvironmentError(`could not initialize environment '${ref}': ${messageOf(cause)}`, {
    code,
    envName: ref,
    retryable,
    details,
    cause,
  });
}
