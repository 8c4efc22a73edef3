import {
  type CreateServiceRequest,
  type ErrorCode,
  fillPath,
  isPlatformError,
  type Route,
  type ServiceRecord,
  serviceRoutes,
  type UpdateServiceRequest,
} from "@aenv/contract";
import { ValidationError } from "../errors/errors.ts";
import { withQuery } from "../http/json-client.ts";
import { ControlClient, type ControlClientOptions } from "./control-client.ts";
import { readService } from "./records.ts";
import type { RequestOptions } from "./scheduler-client.ts";

/**
 * Creates, changes and deletes services: replicas of an environment that are kept alive behind one URL.
 *
 * @example
 * const services = new ServiceClient("http://localhost:8080");
 * const { id, service_url } = await services.create({ envName: "weather-demo@1.0.0", replicas: 2 });
 */
export class ServiceClient {
  readonly #control: ControlClient;

  constructor(controlUrl: string, options: ControlClientOptions = {}) {
    this.#control = new ControlClient(controlUrl, options);
  }

  async create(request: CreateServiceRequest, options: RequestOptions = {}): Promise<ServiceRecord> {
    const doing = `create a service of '${request.envName}'`;
    return readService(
      await this.#send(serviceRoutes.createService, {}, doing, options, { body: request, notFound: "environment.not_found" }),
    );
  }

  async get(id: string, options: RequestOptions = {}): Promise<ServiceRecord> {
    return readService(await this.#send(serviceRoutes.getService, { id }, `get service '${id}'`, options));
  }

  /** Services of `name` or `name@version`, or all. */
  async list(filter: { readonly ref?: string } = {}, options: RequestOptions = {}): Promise<ServiceRecord[]> {
    const data = await this.#send(serviceRoutes.listServices, { ref: filter.ref ?? "*" }, "list services", options);
    if (data !== null && !Array.isArray(data)) throw new ValidationError("the list of services is not a list");
    return (data ?? []).map(readService);
  }

  /** Fields that are left out keep their value; variables are added to the existing ones. */
  async update(id: string, change: UpdateServiceRequest, options: RequestOptions = {}): Promise<ServiceRecord> {
    return readService(await this.#send(serviceRoutes.updateService, { id }, `change service '${id}'`, options, { body: change }));
  }

  /** Deletes the service and its replicas. False if the server reports that there was none. */
  async delete(id: string, { deleteStorage, ...options }: RequestOptions & { readonly deleteStorage?: boolean } = {}): Promise<boolean> {
    const route = { ...serviceRoutes.deleteService, path: withQuery(serviceRoutes.deleteService.path, { deleteStorage }) };
    try {
      await this.#send(route, { id }, `delete service '${id}'`, options);
      return true;
    } catch (error) {
      if (isPlatformError(error, "service.not_found")) return false;
      throw error;
    }
  }

  #send(
    route: Route,
    names: Readonly<Record<string, string>>,
    doing: string,
    options: RequestOptions,
    more: { readonly body?: unknown; readonly notFound?: ErrorCode } = {},
  ): Promise<unknown> {
    const { method } = route;
    const rule = method === "POST" ? "once" : "idempotent";
    return this.#control.send({
      notFound: "service.not_found",
      conflict: "service.exists",
      ...options,
      ...more,
      method,
      path: fillPath(route, names),
      doing,
      rule,
    });
  }
}
