import {
  type ForkFidelity,
  type InstanceRecord,
  isPlatformError,
  messageOf,
  type SnapshotRecord,
  type SnapshotRequest,
  untilAborted,
} from "@aenv/contract";
import type { Clock } from "../async/clock.ts";
import { SharedTask } from "../async/shared-task.ts";
import { EnvironmentError } from "../errors/errors.ts";
import type { JsonClient } from "../http/json-client.ts";
import type { Addresses } from "../platform/addresses.ts";
import type { CreateResult } from "../platform/create-batch.ts";
import type { SchedulerClient } from "../platform/scheduler-client.ts";
import type { SandboxTarget } from "../sandbox/target.ts";
import { waitUntilHealthy } from "./health.ts";
import type { Logger } from "./logger.ts";
import { createdInstance, existingInstance, isOnPlatform, isTokenWithheld, type OpenInstance, warningsOf } from "./open-instance.ts";
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
  /** Bearer token for a data port that requires one and is known to belong to the platform; empty for none. */
  readonly token: string;
}

const STARTUP_TIMEOUT_MS = 500_000;
const HEALTH_TIMEOUT_MS = { remote: 300_000, local: 30_000 };
/** How long refused connections to an environment on this machine are retried: short, so that a missing server is reported within a second. */
export const REFUSED_LIMIT_MS = 600;

/** Opens one instance for all concurrent callers, and ends every instance that it created. */
export class InstanceLifecycle {
  readonly #config: LifecycleOptions;
  #instance: OpenInstance | null = null;
  #opening: SharedTask<OpenInstance> | null = null;
  #isReleased = false;
  #isFork = false;
  /** Deletions in progress, also of instances whose creation was answered after all callers had aborted. */
  readonly #endings = new Set<Promise<void>>();

  constructor(options: LifecycleOptions) {
    this.#config = options;
  }

  get instance(): OpenInstance | null {
    return this.#instance;
  }

  /**
   * Creates the instances of several lifecycles by one request; each lifecycle owns its instance. Throws if the whole request
   * failed or the signal aborts.
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
    const requested = lifecycles.map((_, at) => creating.then((results) => recordOf(results[at])));
    const opened = await Promise.allSettled(lifecycles.map((lifecycle, at) => lifecycle.open(signal, true, requested[at])));
    signal?.throwIfAborted();
    const [one] = opened;
    await creating.catch((error) => Promise.reject(one?.status === "rejected" ? one.reason : error));
    return opened;
  }

  /** The instance, opened if necessary. After a release only with `mayReopen`, so that a late call does not open an instance that is never released. */
  async open(signal: AbortSignal | undefined, mayReopen = false, requested?: Promise<InstanceRecord>): Promise<OpenInstance> {
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
    this.#opening ??= new SharedTask((opening) => this.#open(opening, requested));
    return this.#opening.join(signal);
  }

  /** Takes over a fork; from now on this lifecycle ends it. */
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

  async fork(count: number, fidelity: ForkFidelity | undefined, signal: AbortSignal | undefined): Promise<OpenInstance[]> {
    const { scheduler, addresses, clock, timeoutMs, token } = this.#config;
    const { controlId } = await this.open(signal);
    const forking = scheduler.forkInstance(controlId, count, {
      deadlineAt: clock.now() + timeoutMs,
      ...(fidelity !== undefined && { fidelity }),
    });
    const records = await this.#orDiscard(forking, signal);
    const copies = records.map((record) => createdInstance(addresses, record, token));
    try {
      if (copies.length !== count)
        throw new EnvironmentError(`requested ${count} forks, got ${copies.length}`, { code: "instance.start_failed" });
      return await Promise.all(copies.map((copy) => this.#untilRunning(copy, STARTUP_TIMEOUT_MS, signal)));
    } catch (error) {
      for (const copy of copies) this.#end(copy);
      throw error;
    }
  }

  async store(request: SnapshotRequest, signal: AbortSignal | undefined): Promise<SnapshotRecord> {
    const { addresses, scheduler, ref } = this.#config;
    if (addresses.mode === "local") {
      throw new EnvironmentError(
        `cannot store a snapshot of '${ref}': only a platform stores snapshots; snapshot() without options returns the state`,
        { code: "instance.unsupported", envName: ref },
      );
    }
    const { controlId } = await this.open(signal);
    return scheduler.storeSnapshot(controlId, request, { signal });
  }

  async presignUrl(port: number, minutes: number | undefined, signal: AbortSignal | undefined): Promise<string> {
    const { addresses, scheduler, ref, clock, timeoutMs } = this.#config;
    if (addresses.mode === "local") {
      throw new EnvironmentError(
        `cannot create a link to port ${port} of '${ref}': only a platform creates links, and this environment runs on this machine`,
        {
          code: "instance.unsupported",
          envName: ref,
        },
      );
    }
    const { controlId } = await this.open(signal);
    const deadlineAt = clock.now() + timeoutMs;
    return scheduler.presignUrl(controlId, port, { signal, deadlineAt, ...(minutes !== undefined && { minutes }) });
  }

  /** The open instance, for requests of the control port about its sandbox. */
  async sandboxTarget(signal: AbortSignal | undefined): Promise<SandboxTarget> {
    const { addresses, scheduler, ref } = this.#config;
    if (addresses.mode === "local") {
      const message = `commands and files of '${ref}' are not available: only a platform provides them, and this environment runs on this machine`;
      throw new EnvironmentError(message, { code: "instance.unsupported", envName: ref });
    }
    const { controlId } = await this.open(signal);
    return { id: controlId, control: scheduler.control, scheduler };
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

  /** `requested` is an instance of a batch request; without it one is created here. */
  async #open(signal: AbortSignal, requested: Promise<InstanceRecord> | undefined): Promise<OpenInstance> {
    const { ref, options, addresses, logger, token } = this.#config;
    let instance: OpenInstance | null = null;
    try {
      instance =
        addresses.mode === "local" ? existingInstance(addresses, new Date(), token) : await this.#create(addresses, signal, requested);
      if (options.dataPlane !== false && isTokenWithheld(addresses, instance)) throw this.#withheld(instance);
      // An AEnv platform reports `Running` only after the health check passed.
      if (options.dataPlane !== false && options.skipHealthCheck !== true && !isOnPlatform(instance.record)) {
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

  async #create(addresses: Addresses, signal: AbortSignal, requested: Promise<InstanceRecord> | undefined): Promise<OpenInstance> {
    const { ref, options, scheduler, clock, logger, token } = this.#config;
    const timeoutMs = options.startupTimeoutMs ?? STARTUP_TIMEOUT_MS;
    const deadlineAt = clock.now() + timeoutMs;
    logger.info("creating an instance", { env: ref });
    const creating = requested ?? scheduler.createInstance(toCreateRequest(ref, options), { deadlineAt });
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

  /** Reports the options that the server could not apply; the instance runs without them. */
  #warn({ record }: OpenInstance): void {
    const { ref: env, options, logger } = this.#config;
    for (const warning of warningsOf(record)) {
      logger.warn("the server could not apply all options", { env, instance: record.id, warning });
      try {
        options.onWarning?.(warning);
      } catch (error) {
        logger.error("the onWarning listener threw", { env, error: messageOf(error) });
      }
    }
  }

  #withheld({ url }: OpenInstance): EnvironmentError {
    const { addresses, ref } = this.#config;
    const controlUrl = addresses.mode === "remote" ? addresses.controlUrl : "";
    return new EnvironmentError(
      `the data port at ${url} requires a token, but it is on another host than the control API at ${controlUrl}; if it belongs to the platform, set the option dataUrl`,
      { code: "access.denied", envName: ref },
    );
  }

  /** The created instances. If the caller aborts first, they are deleted as soon as the creation is answered. */
  async #orDiscard<T extends InstanceRecord | InstanceRecord[]>(making: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await untilAborted(making, signal);
    } catch (error) {
      if (signal?.aborted) {
        const discarding = making.then(
          (created) => Promise.all([created].flat().map((record) => this.#destroy(record.id))),
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

  /** A failed deletion is only logged: the instance ends by its ttl. */
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
  throw result?.error ?? new EnvironmentError("the server's response has no entry for this instance", { code: "instance.start_failed" });
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
