import {
  type CreateInstanceRequest,
  controlRoutes,
  type ErrorCode,
  fillPath,
  headers,
  type InstanceRecord,
  type InstanceStatus,
  isObject,
  isPlatformError,
  type ResetRequest,
  type ResetResult,
  splitRef,
} from "@aenv/contract";
import { poll } from "../async/polling.ts";
import { EnvironmentError, ValidationError } from "../errors/errors.ts";
import { preview } from "../errors/failure.ts";
import { withQuery } from "../http/json-client.ts";
import { SseDecoder } from "../http/sse.ts";
import { ControlClient, type ControlClientOptions } from "./control-client.ts";
import { type CreateResult, createBatch, createBody } from "./create-batch.ts";
import { randomId } from "./ids.ts";
import { readInstance } from "./read-instance.ts";
import { readReset } from "./read-reset.ts";

export interface SchedulerClientOptions extends ControlClientOptions {
  /**
   * Whether the server knows a repeated create by its key, as ours does. With false a create whose answer was lost is
   * not sent again: the original's services would start a second instance.
   */
  readonly dedupesCreate?: boolean;
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** A moment of the client's clock after which nothing is tried again. */
  readonly deadlineAt?: number | undefined;
}

export interface CreateOptions extends RequestOptions {
  /** How long our platform may hold its answer until the instance runs, such as `10s`; false for not at all. It waits if this is absent. */
  readonly wait?: boolean | string;
}

export interface LookOptions extends RequestOptions {
  /** How long our platform may hold its answer until the start is decided. */
  readonly waitMs?: number;
}

/** Which instances; what is left out does not matter. */
export interface InstanceFilter {
  /** `name` or `name@version`. */
  readonly ref?: string;
  readonly status?: string;
  readonly owner?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface InstancePage {
  readonly items: readonly InstanceRecord[];
  /** Where the next page begins; null at the end. */
  readonly next: string | null;
}

/** One line of an instance's story. */
export interface InstanceEvent {
  readonly at: string;
  readonly what: string;
}

export interface LogOptions extends RequestOptions {
  /** How many of the last lines; 100 if absent. */
  readonly tail?: number;
  /** Go on with what comes, until the signal or the instance's end. */
  readonly follow?: boolean;
}

export interface PresignOptions extends RequestOptions {
  /** How long the link is good for; 5 if absent. A server may allow less than is asked for. */
  readonly minutes?: number;
}

export interface WaitOptions extends RequestOptions {
  /** 300 s if absent. */
  readonly timeoutMs?: number;
  /** How long to wait between two looks: short at first, then longer. */
  readonly interval?: { readonly minMs: number; readonly maxMs: number };
  /** False: it counts as running without an address too, as a sandbox that serves nothing by itself has none. */
  readonly needsAddress?: boolean;
}

export const POLL_INTERVAL = { minMs: 50, maxMs: 1_000 };

/** Longer than a start should take, shorter than what proxies on the way put up with. */
const LONGEST_STATUS_WAIT_MS = 20_000;

/** Statuses that no instance leaves again. */
const FINAL: readonly string[] = ["Failed", "Terminated", "Succeeded"];

/**
 * Makes, finds and ends instances: the control API, and a sandbox that slots many.
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

  /** Each call makes one instance, however often the request has to be sent. */
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
   * Makes many instances, by one request for each thousand. One that fails does not stop the others: the results come in
   * the order of the requests. It throws only if the server could not be asked at all.
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
    return readInstance(await this.#send(route, id, `look at instance '${id}'`, "idempotent", options));
  }

  /** One page of our platform's instances, by its own filters. */
  async pageInstances(
    { labels = {}, ...filter }: InstanceFilter & { limit?: number; after?: string } = {},
    options: RequestOptions = {},
  ): Promise<InstancePage> {
    const { ref: envName, ...rest } = filter;
    const label = Object.entries(labels).map(([key, value]) => `label=${encodeURIComponent(`${key}=${value}`)}`);
    const path = withQuery(["/env-instance/list", label.join("&")].filter(Boolean).join("?"), { envName, ...rest });
    const data = await this.#list(path, options);
    if (!isObject(data) || !Array.isArray(data.items)) throw new ValidationError("the page of instances is not a list");
    return { items: data.items.map(readInstance), next: typeof data.next === "string" ? data.next : null };
  }

  /** Every instance that fits, page by page. */
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
    if (items !== null && items !== undefined && !Array.isArray(items)) throw new ValidationError("the list of instances is not a list");
    const { version } = splitRef(filter.ref ?? "");
    return (items ?? [])
      .map(readInstance)
      .filter((one: InstanceRecord) => version === "" || !one.env?.version || one.env.version === version)
      .filter((one: InstanceRecord) => filter.status === undefined || one.status === filter.status);
  }

  /** False if there was no such instance, which is as good as deleted. */
  async deleteInstance(id: string, options: RequestOptions = {}): Promise<boolean> {
    try {
      await this.#send(controlRoutes.deleteInstance, id, `delete instance '${id}'`, "idempotent", options);
      return true;
    } catch (error) {
      if (isPlatformError(error, "instance.not_found")) return false;
      throw error;
    }
  }

  /** Lets it live for this much longer, from now on. */
  async renewInstance(id: string, ttl: string, options: RequestOptions = {}): Promise<InstanceRecord> {
    return readInstance(await this.#post(id, "renew", `renew instance '${id}'`, { ttl }, options));
  }

  /** Begins a new episode and returns its task, seed and first observation; what is left out stays as it was. */
  async resetInstance(id: string, episode: ResetRequest = {}, options: RequestOptions = {}): Promise<ResetResult> {
    return readReset(await this.#post(id, "reset", `reset instance '${id}'`, episode, options));
  }

  /** What has happened to it, also why it failed. */
  async listEvents(id: string, options: RequestOptions = {}): Promise<InstanceEvent[]> {
    const route = { method: "GET", path: "/env-instance/:id/events" };
    const data = await this.#send(route, id, `read the events of instance '${id}'`, "idempotent", options);
    if (!Array.isArray(data)) throw new ValidationError(`the events of '${id}' are not a list`);
    return data as InstanceEvent[];
  }

  /** What its sandbox printed, line by line. */
  async *logs(id: string, { tail, follow, ...options }: LogOptions = {}): AsyncGenerator<string> {
    const answer = await this.#control.open({
      ...options,
      method: "GET",
      path: withQuery(`/env-instance/${encodeURIComponent(id)}/logs`, { tail, follow }),
      doing: `read the logs of instance '${id}'`,
      rule: "idempotent",
      notFound: "instance.not_found",
      // An instance may have nothing to say for hours.
      ...(follow && { idleTimeoutMs: null }),
    });
    if (!follow) {
      const lines = (await answer.text()).split("\n");
      yield* lines.at(-1) === "" ? lines.slice(0, -1) : lines;
      return;
    }
    const decoder = new SseDecoder();
    for await (const chunk of answer.chunks()) for (const { data } of decoder.push(chunk)) yield data;
  }

  /**
   * A link to a port inside the instance's sandbox, for HTTP and WebSocket. It works without a token until it
   * expires. The server answers it with 502 for as long as nothing listens on the port.
   */
  async presignUrl(id: string, port: number, { minutes = 5, ...options }: PresignOptions = {}): Promise<string> {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new ValidationError(`${port} is not a port: give one from 1 to 65535`);
    if (!(minutes > 0 && Number.isFinite(minutes)))
      throw new ValidationError(`a link cannot be good for ${minutes} minutes: give more than 0`);
    const route = { method: "POST", path: "/env-instance/:id/presign-url" };
    const data = await this.#send(route, id, `make a link to port ${port} of instance '${id}'`, "idempotent", options, {
      body: { port, expiration_time_in_minutes: minutes },
      notFound: "instance.unsupported",
    });
    const url = isObject(data) ? data.url : undefined;
    if (typeof url === "string" && url !== "") return url;
    throw new ValidationError(
      `the answer to making a link to port ${port} of '${id}' has no URL: ${preview(JSON.stringify(data) ?? "nothing")}`,
    );
  }

  /** Copies that go on from where the instance stands now. */
  async forkInstance(id: string, count: number, options: RequestOptions = {}): Promise<InstanceRecord[]> {
    const data = await this.#send(controlRoutes.forkInstance, id, `fork instance '${id}'`, "once", options, {
      body: { count },
      notFound: "instance.unsupported",
    });
    if (!Array.isArray(data)) throw new ValidationError(`the answer to forking '${id}' is not a list of instances`);
    return data.map(readInstance);
  }

  /** Looks until the instance has the status. Stops at once when it can no longer get there, with the reason if one is given. */
  async waitForStatus(id: string, status: InstanceStatus, options: WaitOptions = {}): Promise<InstanceRecord> {
    const { timeoutMs = 300_000, interval = POLL_INTERVAL, signal, needsAddress = true } = options;
    const { clock } = this.#control;
    let last = "unknown";
    const look = async (leftMs: number) => {
      // Ours answers as soon as it is decided; others do not know the question and answer at once.
      const waitMs = status === "Running" ? Math.floor(Math.min(leftMs, LONGEST_STATUS_WAIT_MS, this.#timeoutMs / 2)) : 0;
      const record = await this.getInstance(id, { signal, deadlineAt: clock.now() + leftMs, waitMs });
      last = record.status;
      // Without an address its tools cannot be used, whatever its status says.
      if (record.status === status) return needsAddress && status === "Running" && !record.ip ? null : record;
      if (FINAL.includes(record.status)) throw ended(record, status);
      return null;
    };
    const found = await poll(look, { clock, timeoutMs, interval, signal });
    if (found !== null) return found;
    const message = `instance '${id}' did not become ${status} within ${timeoutMs} ms; its last status was ${last}`;
    throw new EnvironmentError(last === status ? `${message}, without an address` : message, { code: "instance.start_timeout" });
  }

  #list(path: string, options: RequestOptions): Promise<unknown> {
    const doing = "list instances";
    return this.#control.send({ ...options, method: "GET", path, doing, rule: "idempotent", notFound: "instance.unsupported" });
  }

  #post(id: string, verb: string, doing: string, body: unknown, options: RequestOptions): Promise<unknown> {
    return this.#send({ method: "POST", path: `/env-instance/:id/${verb}` }, id, doing, "once", options, { body });
  }

  #send(
    route: { readonly method: string; readonly path: string },
    id: string,
    doing: string,
    rule: "idempotent" | "once",
    options: RequestOptions,
    more: { readonly body?: unknown; readonly notFound?: ErrorCode } = {},
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
