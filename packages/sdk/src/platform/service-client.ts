import { type CreateServiceRequest, type ServiceRecord, service, serviceRoutes, type UpdateServiceRequest } from "@aenv/contract";
import * as z from "zod";
import { readAnswer } from "../http/read-answer.ts";
import { ControlClient, type ControlClientOptions, isDeleted, type RequestOptions, requestTo } from "./control-client.ts";
import { readService } from "./records.ts";

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
    this.#control = new ControlClient(controlUrl, { notFound: "service.not_found", conflict: "service.exists" }, options);
  }

  async create(request: CreateServiceRequest, options: RequestOptions = {}): Promise<ServiceRecord> {
    const data = await this.#control.send({
      ...options,
      ...requestTo(serviceRoutes.createService),
      doing: `create a service of '${request.envName}'`,
      body: request,
      notFound: "environment.not_found",
    });
    return readService(data);
  }

  async get(id: string, options: RequestOptions = {}): Promise<ServiceRecord> {
    return readService(
      await this.#control.send({ ...options, ...requestTo(serviceRoutes.getService, { id }), doing: `get service '${id}'` }),
    );
  }

  /** Services of `name` or `name@version`, or all. */
  async list(filter: { readonly ref?: string } = {}, options: RequestOptions = {}): Promise<ServiceRecord[]> {
    const request = requestTo(serviceRoutes.listServices, { ref: filter.ref ?? "*" });
    const data = await this.#control.send({ ...options, ...request, doing: "list services" });
    return readAnswer(z.array(service), data ?? [], "the list of services");
  }

  /** Fields that are left out keep their value; variables are added to the existing ones. */
  async update(id: string, change: UpdateServiceRequest, options: RequestOptions = {}): Promise<ServiceRecord> {
    const request = requestTo(serviceRoutes.updateService, { id });
    return readService(await this.#control.send({ ...options, ...request, doing: `change service '${id}'`, body: change }));
  }

  /** Deletes the service and its replicas. False if the server reports that there was none. */
  delete(id: string, { deleteStorage, ...options }: RequestOptions & { readonly deleteStorage?: boolean } = {}): Promise<boolean> {
    const request = requestTo(serviceRoutes.deleteService, { id }, { deleteStorage });
    return isDeleted(this.#control.send({ ...options, ...request, doing: `delete service '${id}'` }), "service.not_found");
  }
}
