import {
  boundedLines,
  type CreateInstanceRequest,
  controlRoutes,
  type ForkFidelity,
  headers,
  type InstanceEvent,
  type InstanceRecord,
  type InstanceStatus,
  instance,
  instanceEvent,
  isObject,
  pageOf,
  type ResetRequest,
  type ResetResult,
  type SnapshotRecord,
  type SnapshotRequest,
  SseDecoder,
  splitRef,
} from "@aenv/contract";
import * as z from "zod";
import { ValidationError } from "../errors/errors.ts";
import { preview } from "../errors/failure.ts";
import { MAX_ANSWER_BYTES } from "../http/http.ts";
import { withQuery } from "../http/json-client.ts";
import { readAnswer } from "../http/read-answer.ts";
import { ControlClient, isDeleted, type RequestOptions, requestTo } from "./control-client.ts";
import { type CreateResult, createBatch, createBody } from "./create-batch.ts";
import { randomId } from "./ids.ts";
import { eachItem, type PageRequest } from "./page.ts";
import { readInstance, readReset, readSnapshot } from "./records.ts";
import type {
  CreateOptions,
  InstanceFilter,
  InstancePage,
  LogOptions,
  LookOptions,
  PresignOptions,
  SchedulerClientOptions,
  WaitOptions,
} from "./scheduler-options.ts";
import { waitForStatus } from "./wait-for-status.ts";

/** A snapshot of gigabytes takes a while to store. */
const STORE_TIMEOUT_MS = 10 * 60_000;

const LISTING = { doing: "list instances", notFound: "instance.unsupported" } as const;

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
    this.#control = new ControlClient(controlUrl, { notFound: "instance.not_found" }, options);
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
      ...requestTo(controlRoutes.createInstance),
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
    const request = requestTo(controlRoutes.getInstance, { id }, { wait: waitMs ? `${waitMs}ms` : undefined });
    return readInstance(await this.#control.send({ ...options, ...request, doing: `get instance '${id}'` }));
  }

  /** One page of instances. Only an AEnv platform has this route. */
  async pageInstances(
    { labels = {}, ref: envName, ...filter }: InstanceFilter & PageRequest = {},
    options: RequestOptions = {},
  ): Promise<InstancePage> {
    const label = Object.entries(labels).map(([key, value]) => `label=${encodeURIComponent(`${key}=${value}`)}`);
    const { method, path } = controlRoutes.pageInstances;
    const request = { method, path: withQuery([path, label.join("&")].filter(Boolean).join("?"), { envName, ...filter }) };
    const data = await this.#control.send({ ...options, ...request, ...LISTING });
    const { items, next = null } = readAnswer(pageOf(instance), data, "the page of instances");
    return { items, next };
  }

  /** All matching instances, requested page by page. */
  eachInstance(filter: InstanceFilter = {}, options: RequestOptions = {}): AsyncGenerator<InstanceRecord> {
    return eachItem((page) => this.pageInstances({ ...filter, ...page }, options));
  }

  /** Instances of `name` or `name@version`, or all; the version is compared here because the original ignores it. */
  async listInstances(filter: { ref?: string; status?: string } = {}, options: RequestOptions = {}): Promise<InstanceRecord[]> {
    const request = requestTo(controlRoutes.listInstances, { ref: filter.ref ?? "*" });
    const data = await this.#control.send({ ...options, ...request, ...LISTING });
    const items = isObject(data) ? data.items : data;
    const { version } = splitRef(filter.ref ?? "");
    return readAnswer(z.array(instance), items ?? [], "the list of instances")
      .filter((one) => version === "" || !one.env?.version || one.env.version === version)
      .filter((one) => filter.status === undefined || one.status === filter.status);
  }

  /** False if there was no such instance. */
  deleteInstance(id: string, options: RequestOptions = {}): Promise<boolean> {
    const request = requestTo(controlRoutes.deleteInstance, { id });
    return isDeleted(this.#control.send({ ...options, ...request, doing: `delete instance '${id}'` }), "instance.not_found");
  }

  /** The instance ends after this ttl from now. */
  async renewInstance(id: string, ttl: string, options: RequestOptions = {}): Promise<InstanceRecord> {
    const request = requestTo(controlRoutes.renewInstance, { id });
    return readInstance(await this.#control.send({ ...options, ...request, doing: `renew instance '${id}'`, body: { ttl } }));
  }

  /** Begins a new episode and returns its task, seed and first observation; fields that are left out keep their value. */
  async resetInstance(id: string, episode: ResetRequest = {}, options: RequestOptions = {}): Promise<ResetResult> {
    const request = requestTo(controlRoutes.resetInstance, { id });
    return readReset(await this.#control.send({ ...options, ...request, doing: `reset instance '${id}'`, body: episode }));
  }

  /** The instance's history, with the reason of a failure. */
  async listEvents(id: string, options: RequestOptions = {}): Promise<InstanceEvent[]> {
    const request = requestTo(controlRoutes.listEvents, { id });
    const data = await this.#control.send({ ...options, ...request, doing: `read the events of instance '${id}'` });
    return readAnswer(z.array(instanceEvent), data, `the list of events of '${id}'`);
  }

  /** The output of its sandbox, line by line. */
  async *logs(id: string, { tail, follow, ...options }: LogOptions = {}): AsyncGenerator<string> {
    const answer = await this.#control.open({
      ...options,
      ...requestTo(controlRoutes.readLogs, { id }, { tail, follow }),
      doing: `read the logs of instance '${id}'`,
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
    const data = await this.#control.send({
      ...options,
      ...requestTo(controlRoutes.presignUrl, { id }),
      doing: `create a link to port ${port} of instance '${id}'`,
      rule: "idempotent",
      body: { port, expiration_time_in_minutes: minutes },
      notFound: "instance.unsupported",
    });
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
    { fidelity, ...options }: RequestOptions & { readonly fidelity?: ForkFidelity } = {},
  ): Promise<InstanceRecord[]> {
    const data = await this.#control.send({
      ...options,
      ...requestTo(controlRoutes.forkInstance, { id }),
      doing: `fork instance '${id}'`,
      body: { count, ...(fidelity !== undefined && { fidelity }) },
      notFound: "instance.unsupported",
    });
    return readAnswer(z.array(instance), data, `the response to forking '${id}'`);
  }

  /** Stores a snapshot of the instance, which goes on. Only an AEnv platform has this route. */
  async storeSnapshot(id: string, request: SnapshotRequest, options: RequestOptions = {}): Promise<SnapshotRecord> {
    const data = await this.#control.send({
      ...options,
      ...requestTo(controlRoutes.snapshotInstance, { id }),
      doing: `take a snapshot of instance '${id}'`,
      // Without a field, the server would answer with the state and store nothing.
      body: { ...request, fidelity: request.fidelity ?? "state" },
      timeoutMs: STORE_TIMEOUT_MS,
    });
    return readSnapshot(data);
  }

  /** Polls until the instance has the status. Throws at once if it can no longer reach it, with the reason if the server gives one. */
  waitForStatus(id: string, status: InstanceStatus, options: WaitOptions = {}): Promise<InstanceRecord> {
    const { clock } = this.#control;
    const look = (how: LookOptions) => this.getInstance(id, how);
    return waitForStatus(id, status, look, { ...options, clock, longestLookMs: this.#timeoutMs / 2 });
  }
}
