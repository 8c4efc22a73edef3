import {
  type CreateInstanceRequest,
  controlRoutes,
  type ErrorCode,
  fillPath,
  headers,
  type InstanceRecord,
  type InstanceStatus,
  instance,
  isObject,
  isPlatformError,
  splitRef,
} from "@aenv/contract";
import { ControlClient, type ControlClientOptions } from "./control-client.ts";
import { EnvironmentError, ValidationError } from "./errors.ts";
import { randomId } from "./ids.ts";
import { poll } from "./polling.ts";

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

export interface WaitOptions extends RequestOptions {
  /** 300 s if absent. */
  readonly timeoutMs?: number;
  /** How long to wait between two looks: short at first, then longer. */
  readonly interval?: { readonly minMs: number; readonly maxMs: number };
}

export const POLL_INTERVAL = { minMs: 50, maxMs: 1_000 };

/** Statuses that no instance leaves again. */
const FINAL: readonly string[] = ["Failed", "Terminated", "Succeeded"];

/**
 * Makes, finds and ends instances: the control API, and a box that seats many.
 *
 * @example
 * const scheduler = new SchedulerClient("http://localhost:8080");
 * const { id } = await scheduler.createInstance({ envName: "weather-demo@1.0.0", ttl: "30m" });
 * await scheduler.waitForStatus(id, "Running");
 */
export class SchedulerClient {
  readonly #control: ControlClient;
  readonly #dedupesCreate: boolean;

  constructor(controlUrl: string, options: SchedulerClientOptions = {}) {
    this.#control = new ControlClient(controlUrl, options);
    this.#dedupesCreate = options.dedupesCreate ?? true;
  }

  /** Each call makes one instance, however often the request has to be sent. */
  async createInstance(request: CreateInstanceRequest, options: RequestOptions = {}): Promise<InstanceRecord> {
    const key = randomId();
    const data = await this.#control.send({
      ...options,
      ...controlRoutes.createInstance,
      doing: `create an instance of '${request.envName ?? ""}'`,
      rule: this.#dedupesCreate ? "keyed" : "once",
      body: { ...request, datasource: request.datasource ?? "", ttl: request.ttl ?? "" },
      headers: { [headers.traceId]: key, "idempotency-key": key },
      notFound: "environment.not_found",
      conflict: "instance.exists",
    });
    return readInstance(data);
  }

  async getInstance(id: string, options: RequestOptions = {}): Promise<InstanceRecord> {
    return readInstance(await this.#send(controlRoutes.getInstance, id, `look at instance '${id}'`, "idempotent", options));
  }

  /** Instances of `name` or `name@version`, or all; the version is compared here because the original ignores it. */
  async listInstances(filter: { ref?: string; status?: string } = {}, options: RequestOptions = {}): Promise<InstanceRecord[]> {
    const path = fillPath(controlRoutes.listInstances, { ref: filter.ref ?? "*" });
    const data = await this.#control.send({
      ...options,
      method: "GET",
      path,
      doing: "list instances",
      rule: "idempotent",
      notFound: "instance.unsupported",
    });
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
    const { timeoutMs = 300_000, interval = POLL_INTERVAL, signal } = options;
    const { clock } = this.#control;
    let last = "unknown";
    const look = async (leftMs: number) => {
      const record = await this.getInstance(id, { signal, deadlineAt: clock.now() + leftMs });
      last = record.status;
      // Without an address it cannot be used, whatever its status says.
      if (record.status === status) return status === "Running" && !record.ip ? null : record;
      if (FINAL.includes(record.status)) throw ended(record, status);
      return null;
    };
    const found = await poll(look, { clock, timeoutMs, interval, signal });
    if (found !== null) return found;
    const message = `instance '${id}' did not become ${status} within ${timeoutMs} ms; its last status was ${last}`;
    throw new EnvironmentError(last === status ? `${message}, without an address` : message, { code: "instance.start_timeout" });
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

function readInstance(data: unknown): InstanceRecord {
  const parsed = instance.safeParse(data);
  if (parsed.success) return parsed.data;
  throw new ValidationError(`the server described an instance in an unexpected shape: ${parsed.error.message}`);
}

function ended(record: InstanceRecord, wanted: string): EnvironmentError {
  const reason = [record.reason, record.message].find((one) => typeof one === "string" && one !== "");
  const because = reason === undefined ? "the server gave no reason" : String(reason);
  return new EnvironmentError(`instance '${record.id}' is ${record.status} and will not become ${wanted}: ${because}`, {
    code: "instance.start_failed",
    details: { status: record.status },
  });
}
