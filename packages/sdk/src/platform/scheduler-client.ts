import {
  boundedLines,
  type CreateInstanceRequest,
  controlRoutes,
  type ErrorCode,
  type ForkFidelity,
  fillPath,
  headers,
  type InstanceEvent,
  type InstanceRecord,
  type InstanceStatus,
  instance,
  instanceEvent,
  isObject,
  isPlatformError,
  pageOf,
  type ResetRequest,
  type ResetResult,
  type Route,
  type SnapshotRecord,
  type SnapshotRequest,
  SseDecoder,
  splitRef,
} from "@aenv/contract";
import * as z from "zod";
import { poll } from "../async/polling.ts";
import { EnvironmentError, ValidationError } from "../errors/errors.ts";
import { preview } from "../errors/failure.ts";
import { MAX_ANSWER_BYTES } from "../http/http.ts";
import { withQuery } from "../http/json-client.ts";
import { readAnswer } from "../http/read-answer.ts";
import { ControlClient, type ControlClientOptions } from "./control-client.ts";
import { type CreateResult, createBatch, createBody } from "./create-batch.ts";
import { randomId } from "./ids.ts";
import { readInstance, readReset, readSnapshot } from "./records.ts";

export interface SchedulerClientOptions extends ControlClientOptions {
  /**
   * Whether the server recognises a repeated create request by its idempotency key, as an AEnv platform does. With false a
   * create request whose response was lost is not sent again: the original's services would start a second instance.
   */
  readonly dedupesCreate?: boolean;
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** Time of the client's clock after which no retry starts. */
  readonly deadlineAt?: number | undefined;
}

export interface CreateOptions extends RequestOptions {
  /** How long an AEnv platform may hold its response until the instance runs, such as `10s`; false: not at all. It waits if this is absent. */
  readonly wait?: boolean | string;
}

export interface LookOptions extends RequestOptions {
  /** How long an AEnv platform may hold its response until the instance runs or failed. */
  readonly waitMs?: number;
}

/** Filter for instances; a field that is left out matches all. */
export interface InstanceFilter {
  /** `name` or `name@version`. */
  readonly ref?: string;
  readonly status?: string;
  readonly owner?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface InstancePage {
  readonly items: readonly InstanceRecord[];
  /** Cursor of the next page; null at the end. */
  readonly next: string | null;
}

export interface LogOptions extends RequestOptions {
  /** Number of last lines; 100 if absent. */
  readonly tail?: number;
  /** Continue with new lines until the signal aborts or the instance ends. */
  readonly follow?: boolean;
}

export interface PresignOptions extends RequestOptions {
  /** How long the link is valid; 5 if absent. A server may allow less. */
  readonly minutes?: number;
}

export interface WaitOptions extends RequestOptions {
  /** 300 s if absent. */
  readonly timeoutMs?: number;
  /** Interval between two status requests, growing from `minMs` to `maxMs`. */
  readonly interval?: { readonly minMs: number; readonly maxMs: number };
  /** False: an instance without an address counts as running too, for sandboxes without a data plane. */
  readonly needsAddress?: boolean;
}

export const POLL_INTERVAL = { minMs: 50, maxMs: 1_000 };

/** Longer than a typical start, shorter than the usual timeout of proxies. */
const LONGEST_STATUS_WAIT_MS = 20_000;

/** A snapshot of gigabytes takes a while to store. */
const STORE_TIMEOUT_MS = 10 * 60_000;

/** Final statuses. */
const FINAL: readonly string[] = ["Failed", "Terminated", "Succeeded"];

/**
 * Creates, finds and deletes instances: by the control API, or in a sandbox that hosts many.
 *
 * @example
 * const scheduler = new SchedulerClient("http://localhost:8080");
 * const { id } = await scheduler.createInstance({ envName: "weather-demo@1.0.0", ttl: "30m" });
 * await scheduler.waitForStatus(id, "Running");
 */
export class SchedulerClient {
  readonly #control: ControlClient;
  readonly #dedupesCreate: boolean;
  readonly #timeoutMs: number;

  constructor(controlUrl: string, options: SchedulerClientOptions = {}) {
    this.#control = new ControlClient(controlUrl, options);
    this.#dedupesCreate = options.dedupesCreate ?? true;
    this.#timeoutMs = options.timeoutMs ?? Number.POSITIVE_INFINITY;
  }

  /** The client that this one uses, for further routes of the control port. */
  get control(): ControlClient {
    return this.#control;
  }

  /** Each call creates one instance, also when the request is retried. */
  async createInstance(request: CreateInstanceRequest, { wait, ...options }: CreateOptions = {}): Promise<InstanceRecord> {
    const key = randomId();
    const data = await this.#control.send({
      ...options,
      ...controlRoutes.createInstance,
      doing: `create an instance of '${request.envName ?? ""}'`,
      rule: this.#dedupesCreate ? "keyed" : "once",
      body: createBody(request, wait),
      headers: { [headers.traceId]: key, "idempotency-key": key },
      notFound: "environment.not_found",
      conflict: "instance.exists",
    });
    return readInstance(data);
  }

  /**
   * Creates many instances, by one request for each thousand. One that fails does not stop the others; the results have
   * the order of the requests. It throws only if the whole request failed.
   */
  createInstances(requests: readonly CreateInstanceRequest[], options: CreateOptions = {}): Promise<CreateResult[]> {
    const rule = this.#dedupesCreate ? "keyed" : "once";
    return createBatch(requests, options, {
      send: (batch) => this.#control.send({ ...options, ...batch, rule }),
      createOne: (request) => this.createInstance(request, options),
    });
  }

  async getInstance(id: string, { waitMs, ...options }: LookOptions = {}): Promise<InstanceRecord> {
    const { method, path } = controlRoutes.getInstance;
    const route = { method, path: withQuery(path, { wait: waitMs ? `${waitMs}ms` : undefined }) };
    return readInstance(await this.#send(route, id, `get instance '${id}'`, "idempotent", options));
  }

  /** One page of instances. Only an AEnv platform has this route. */
  async pageInstances(
    { labels = {}, ...filter }: InstanceFilter & { limit?: number; after?: string } = {},
    options: RequestOptions = {},
  ): Promise<InstancePage> {
    const { ref: envName, ...rest } = filter;
    const label = Object.entries(labels).map(([key, value]) => `label=${encodeURIComponent(`${key}=${value}`)}`);
    const path = withQuery([controlRoutes.pageInstances.path, label.join("&")].filter(Boolean).join("?"), { envName, ...rest });
    const data = await this.#list(path, options);
    const { items, next = null } = readAnswer(pageOf(instance), data, "the page of instances");
    return { items, next };
  }

  /** All matching instances, requested page by page. */
  async *eachInstance(filter: InstanceFilter = {}, options: RequestOptions = {}): AsyncGenerator<InstanceRecord> {
    let after: string | null | undefined;
    do {
      const page: InstancePage = await this.pageInstances({ ...filter, limit: 1_000, ...(after && { after }) }, options);
      yield* page.items;
      after = page.next;
    } while (after !== null);
  }

  /** Instances of `name` or `name@version`, or all; the version is compared here because the original ignores it. */
  async listInstances(filter: { ref?: string; status?: string } = {}, options: RequestOptions = {}): Promise<InstanceRecord[]> {
    const path = fillPath(controlRoutes.listInstances, { ref: filter.ref ?? "*" });
    const data = await this.#list(path, options);
    const items = isObject(data) ? data.items : data;
    const { version } = splitRef(filter.ref ?? "");
    return readAnswer(z.array(instance), items ?? [], "the list of instances")
      .filter((one) => version === "" || !one.env?.version || one.env.version === version)
      .filter((one) => filter.status === undefined || one.status === filter.status);
  }

  /** False if there was no such instance. */
  async deleteInstance(id: string, options: RequestOptions = {}): Promise<boolean> {
    try {
      await this.#send(controlRoutes.deleteInstance, id, `delete instance '${id}'`, "idempotent", options);
      return true;
    } catch (error) {
      if (isPlatformError(error, "instance.not_found")) return false;
      throw error;
    }
  }

  /** The instance ends after this ttl from now. */
  async renewInstance(id: string, ttl: string, options: RequestOptions = {}): Promise<InstanceRecord> {
    return readInstance(await this.#post(controlRoutes.renewInstance, id, `renew instance '${id}'`, { ttl }, options));
  }

  /** Begins a new episode and returns its task, seed and first observation; fields that are left out keep their value. */
  async resetInstance(id: string, episode: ResetRequest = {}, options: RequestOptions = {}): Promise<ResetResult> {
    return readReset(await this.#post(controlRoutes.resetInstance, id, `reset instance '${id}'`, episode, options));
  }

  /** The instance's history, with the reason of a failure. */
  async listEvents(id: string, options: RequestOptions = {}): Promise<InstanceEvent[]> {
    const data = await this.#send(controlRoutes.listEvents, id, `read the events of instance '${id}'`, "idempotent", options);
    return readAnswer(z.array(instanceEvent), data, `the list of events of '${id}'`);
  }

  /** The output of its sandbox, line by line. */
  async *logs(id: string, { tail, follow, ...options }: LogOptions = {}): AsyncGenerator<string> {
    const answer = await this.#control.open({
      ...options,
      method: controlRoutes.readLogs.method,
      path: withQuery(fillPath(controlRoutes.readLogs, { id }), { tail, follow }),
      doing: `read the logs of instance '${id}'`,
      rule: "idempotent",
      notFound: "instance.not_found",
      // An instance may print nothing for hours.
      ...(follow && { idleTimeoutMs: null }),
    });
    if (!follow) {
      yield* boundedLines(answer.chunks(), { maxLineLength: MAX_ANSWER_BYTES });
      return;
    }
    const decoder = new SseDecoder(MAX_ANSWER_BYTES);
    for await (const chunk of answer.chunks()) for (const { data } of decoder.push(chunk)) yield data;
  }

  /**
   * A link to a port inside the instance's sandbox, for HTTP and WebSocket. It works without a token until it
   * expires. The server answers 502 while nothing listens on the port.
   */
  async presignUrl(id: string, port: number, { minutes = 5, ...options }: PresignOptions = {}): Promise<string> {
    if (!Number.isInteger(port) || port < 1 || port > 65_535)
      throw new ValidationError(`${port} is not a port: it must be from 1 to 65535`);
    if (!(minutes > 0 && Number.isFinite(minutes)))
      throw new ValidationError(`a link cannot be valid for ${minutes} minutes: it must be more than 0`);
    const data = await this.#send(
      controlRoutes.presignUrl,
      id,
      `create a link to port ${port} of instance '${id}'`,
      "idempotent",
      options,
      {
        body: { port, expiration_time_in_minutes: minutes },
        notFound: "instance.unsupported",
      },
    );
    const url = isObject(data) ? data.url : undefined;
    if (typeof url === "string" && url !== "") return url;
    throw new ValidationError(
      `the response with the link to port ${port} of '${id}' has no URL: ${preview(JSON.stringify(data) ?? "nothing")}`,
    );
  }

  /** Copies of the instance with its current state. */
  async forkInstance(
    id: string,
    count: number,
    options: RequestOptions & { readonly fidelity?: ForkFidelity } = {},
  ): Promise<InstanceRecord[]> {
    const data = await this.#send(controlRoutes.forkInstance, id, `fork instance '${id}'`, "once", options, {
      body: { count, ...(options.fidelity !== undefined && { fidelity: options.fidelity }) },
      notFound: "instance.unsupported",
    });
    return readAnswer(z.array(instance), data, `the response to forking '${id}'`);
  }

  /** Stores a snapshot of the instance, which goes on. Only an AEnv platform has this route. */
  async storeSnapshot(id: string, request: SnapshotRequest, options: RequestOptions = {}): Promise<SnapshotRecord> {
    // Without a field, the server would answer with the state and store nothing.
    const body = { ...request, fidelity: request.fidelity ?? "state" };
    return readSnapshot(
      await this.#send(controlRoutes.snapshotInstance, id, `take a snapshot of instance '${id}'`, "once", options, {
        body,
        timeoutMs: STORE_TIMEOUT_MS,
      }),
    );
  }

  /** Polls until the instance has the status. Throws at once if it can no longer reach it, with the reason if the server gives one. */
  async waitForStatus(id: string, status: InstanceStatus, options: WaitOptions = {}): Promise<InstanceRecord> {
    const { timeoutMs = 300_000, interval = POLL_INTERVAL, signal, needsAddress = true } = options;
    const { clock } = this.#control;
    let last = "unknown";
    const query = async (leftMs: number) => {
      // An AEnv platform holds its response until the instance runs or failed; others ignore the parameter.
      const waitMs = status === "Running" ? Math.floor(Math.min(leftMs, LONGEST_STATUS_WAIT_MS, this.#timeoutMs / 2)) : 0;
      const record = await this.getInstance(id, { signal, deadlineAt: clock.now() + leftMs, waitMs });
      last = record.status;
      // Without an address its tools cannot be used, even if it is Running.
      if (record.status === status) return needsAddress && status === "Running" && !record.ip ? null : record;
      if (FINAL.includes(record.status)) throw ended(record, status);
      return null;
    };
    const found = await poll(query, { clock, timeoutMs, interval, signal });
    if (found !== null) return found;
    const message = `instance '${id}' did not become ${status} within ${timeoutMs} ms; its last status was ${last}`;
    throw new EnvironmentError(last === status ? `${message}, without an address` : message, { code: "instance.start_timeout" });
  }

  #list(path: string, options: RequestOptions): Promise<unknown> {
    const doing = "list instances";
    return this.#control.send({ ...options, method: "GET", path, doing, rule: "idempotent", notFound: "instance.unsupported" });
  }

  #post(route: Route, id: string, doing: string, body: unknown, options: RequestOptions): Promise<unknown> {
    return this.#send(route, id, doing, "once", options, { body });
  }

  #send(
    route: { readonly method: string; readonly path: string },
    id: string,
    doing: string,
    rule: "idempotent" | "once",
    options: RequestOptions,
    more: { readonly body?: unknown; readonly notFound?: ErrorCode; readonly timeoutMs?: number } = {},
  ): Promise<unknown> {
    const path = route.path.replace(":id", encodeURIComponent(id));
    return this.#control.send({ notFound: "instance.not_found", ...options, method: route.method, path, doing, rule, ...more });
  }
}

function ended(record: InstanceRecord, wanted: string): EnvironmentError {
  const reason = [record.reason, record.message].find((one) => typeof one === "string" && one !== "");
  const because = reason === undefined ? "the server gave no reason" : String(reason);
  return new EnvironmentError(`instance '${record.id}' is ${record.status} and will not become ${wanted}: ${because}`, {
    code: "instance.start_failed",
    details: { status: record.status },
  });
}
