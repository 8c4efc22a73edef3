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
import type { Logger } from "./logger.ts";
import { agentUrlOf, createdInstance, existingInstance, isTokenWithheld, type OpenInstance, warningsOf } from "./open-instance.ts";
import { type EnvironmentOptions, pollInterval, toCreateRequest } from "./options.ts";

export interface LifecycleOptions {
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
export class InstanceLifecycle {
  readonly #config: LifecycleOptions;
  #instance: OpenInstance | null = null;
  #opening: SharedTask<OpenInstance> | null = null;
  #isReleased = false;
  #isFork = false;
  /** Instances that are being ended, also those whose creation was answered after everyone had given up. */
  readonly #endings = new Set<Promise<void>>();

  constructor(options: LifecycleOptions) {
    this.#config = options;
  }

  get instance(): OpenInstance | null {
    return this.#instance;
  }

  /**
   * Creates the instances of several lifecycles by one request; each is its own lifecycle's from then on. Throws if the server
   * could not be asked at all, or the signal aborts.
   */
  static async openAll(
    lifecycles: readonly InstanceLifecycle[],
    signal: AbortSignal | undefined,
  ): Promise<PromiseSettledResult<OpenInstance>[]> {
    const [first] = lifecycles;
    if (first === undefined) return [];
    signal?.throwIfAborted();
    const { scheduler, clock, options } = first.#config;
    const deadlineAt = clock.now() + (options.startupTimeoutMs ?? STARTUP_TIMEOUT_MS);
    const requests = lifecycles.map((lifecycle) => toCreateRequest(lifecycle.#config.ref, lifecycle.#config.options));
    const creating = scheduler.createInstances(requests, { deadlineAt });
    const made = lifecycles.map((_, at) => creating.then((results) => recordOf(results[at])));
    const opened = await Promise.allSettled(lifecycles.map((lifecycle, at) => lifecycle.open(signal, true, made[at])));
    signal?.throwIfAborted();
    const [one] = opened;
    await creating.catch((error) => Promise.reject(one?.status === "rejected" ? one.reason : error));
    return opened;
  }

  /** The instance, opened if need be; after a release only on explicit wish, lest a stray call opens one that nobody ends. */
  async open(signal: AbortSignal | undefined, mayReopen = false, made?: Promise<InstanceRecord>): Promise<OpenInstance> {
    if (this.#instance !== null) return this.#instance;
    signal?.throwIfAborted();
    if (this.#isReleased && (this.#isFork || !mayReopen)) {
      const { ref: envName } = this.#config;
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
  adopt(instance: OpenInstance): void {
    this.#isFork = true;
    this.#instance = instance;
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    const opening = this.#opening;
    opening?.abort(
      new EnvironmentError(`environment '${this.#config.ref}' was released while it was starting`, { code: "request.cancelled" }),
    );
    await opening?.settled();
    const instance = this.#instance;
    this.#instance = null;
    if (instance !== null) this.#end(instance);
    await Promise.all(this.#endings);
  }

  async fork(count: number, signal: AbortSignal | undefined): Promise<OpenInstance[]> {
    const { scheduler, addresses, clock, timeoutMs, token } = this.#config;
    const { controlId } = await this.open(signal);
    const forking = scheduler.forkInstance(controlId, count, { deadlineAt: clock.now() + timeoutMs });
    const records = await this.#orDiscard(forking, signal);
    const copies = records.map((record) => createdInstance(addresses, record, token));
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
    const { addresses, scheduler, ref, clock, timeoutMs } = this.#config;
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
    const instance = await this.open(signal);
    const { addresses, scheduler, options } = this.#config;
    const needsAddress = options.dataPlane !== false;
    if (addresses.mode === "remote") {
      const interval = pollInterval(options.pollIntervalMs);
      await scheduler.waitForStatus(instance.controlId, "Running", { timeoutMs, interval, signal, needsAddress });
    }
    if (needsAddress) await this.#untilHealthy(instance, timeoutMs, signal);
  }

  /** `made` is an instance that was asked for elsewhere; without it one is created here. */
  async #open(signal: AbortSignal, made: Promise<InstanceRecord> | undefined): Promise<OpenInstance> {
    const { ref, options, addresses, logger, token } = this.#config;
    let instance: OpenInstance | null = null;
    try {
      instance = addresses.mode === "local" ? existingInstance(addresses, new Date(), token) : await this.#create(addresses, signal, made);
      if (options.dataPlane !== false && isTokenWithheld(addresses, instance)) throw this.#withheld(instance);
      // What our platform calls running has answered its health check.
      if (options.dataPlane !== false && options.skipHealthCheck !== true && agentUrlOf(instance.record) === null) {
        const { healthTimeoutMs = HEALTH_TIMEOUT_MS[addresses.mode] } = options;
        // A caller that sets healthTimeoutMs may be waiting for a server that is still starting.
        const givesUpEarly = addresses.mode === "local" && options.healthTimeoutMs === undefined;
        await this.#untilHealthy(instance, healthTimeoutMs, signal, givesUpEarly ? REFUSED_LIMIT_MS : undefined);
      }
      this.#instance = instance;
      this.#warn(instance);
      logger.info("environment is ready", { env: ref, instance: instance.record.id });
      return instance;
    } catch (error) {
      const ending = instance === null ? undefined : this.#end(instance);
      if (signal.aborted) throw signal.reason;
      await ending;
      logger.error("environment did not start", { env: ref, error: messageOf(error) });
      throw notInitialized(ref, error);
    } finally {
      this.#opening = null;
    }
  }

  async #create(addresses: Addresses, signal: AbortSignal, made: Promise<InstanceRecord> | undefined): Promise<OpenInstance> {
    const { ref, options, scheduler, clock, logger, token } = this.#config;
    const timeoutMs = options.startupTimeoutMs ?? STARTUP_TIMEOUT_MS;
    const deadlineAt = clock.now() + timeoutMs;
    logger.info("creating an instance", { env: ref });
    const creating = made ?? scheduler.createInstance(toCreateRequest(ref, options), { deadlineAt });
    const instance = createdInstance(addresses, await this.#orDiscard(creating, signal), token);
    try {
      return await this.#untilRunning(instance, deadlineAt - clock.now(), signal);
    } catch (error) {
      const ending = this.#end(instance);
      if (!signal.aborted) await ending;
      throw error;
    }
  }

  async #untilRunning(instance: OpenInstance, timeoutMs: number, signal: AbortSignal | undefined): Promise<OpenInstance> {
    const { scheduler, options, addresses, token } = this.#config;
    const { status, ip, warnings } = instance.record;
    const needsAddress = options.dataPlane !== false;
    if (status === "Running" && (ip || !needsAddress)) return instance;
    const interval = pollInterval(options.pollIntervalMs);
    const record = await scheduler.waitForStatus(instance.controlId, "Running", { timeoutMs, interval, signal, needsAddress });
    return createdInstance(addresses, { ...(warnings !== undefined && { warnings }), ...record }, token);
  }

  #untilHealthy(
    { url, headers }: OpenInstance,
    timeoutMs: number,
    signal: AbortSignal | undefined,
    refusedLimitMs?: number,
  ): Promise<void> {
    const { ref: envName, options, clock, client } = this.#config;
    const interval = pollInterval(options.pollIntervalMs);
    return waitUntilHealthy(client, { envName, url, headers }, { clock, timeoutMs, interval, signal, refusedLimitMs });
  }

  /** Reports what the server could not do; the instance runs without it. */
  #warn({ record }: OpenInstance): void {
    const { ref: env, options, logger } = this.#config;
    for (const warning of warningsOf(record)) {
      logger.warn("the server could not do all that it was asked to", { env, instance: record.id, warning });
      try {
        options.onWarning?.(warning);
      } catch (error) {
        logger.error("the listener of warnings threw", { env, error: messageOf(error) });
      }
    }
  }

  #withheld({ url }: OpenInstance): EnvironmentError {
    const { addresses, ref } = this.#config;
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

  #end(instance: OpenInstance): Promise<void> {
    return instance.isOwned ? this.#track(this.#destroy(instance.controlId)) : Promise.resolve();
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
    const { scheduler, clock, logger, timeoutMs, ref } = this.#config;
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
