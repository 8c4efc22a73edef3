import { createServiceRequest, type ServiceRecord, servicePrefix, serviceRoutes as table, updateServiceRequest } from "@aenv/contract";
import { z } from "zod";
import type { DataUrl } from "../http/data-url.ts";
import type { Hub } from "../hub/hub.ts";
import { toRecord as toEnvironmentRecord } from "../hub/versions/record.ts";
import { statusOf } from "../services/row.ts";
import type { ServiceState, Services } from "../services/services.ts";
import * as answers from "./answers.ts";
import { minimalEnvironment } from "./instance-routes.ts";
import { type ApiRequest, type ApiRoute, bodyLimits, endpointOf, route } from "./route.ts";

export interface ServiceRouteOptions {
  readonly services: Services;
  readonly hub: Hub;
  readonly dataUrl: DataUrl;
}

const id = z.object({ id: z.string().min(1).max(253) });

export function serviceRoutes({ services, hub, dataUrl }: ServiceRouteOptions): ApiRoute[] {
  const trainer = ["trainer", "publisher"] as const;

  const record = (seen: ServiceState, { request }: ApiRequest<unknown, unknown, unknown>): ServiceRecord => {
    const base = dataUrl(request.headers.host);
    if (seen.engineUrl !== undefined) return { ...toRecord(seen, seen.engineUrl), data_url: base };
    return toRecord(seen, `${base}${servicePrefix(seen.row.id)}`.replace(/^https?:\/\//, ""));
  };

  return [
    route({
      ...endpointOf(table.createService),
      summary: "Create a service: replicas of an environment that are kept running behind one URL",
      answer: answers.services.one,
      audited: { event: "service.created", of: (data) => [(data as ServiceRecord).id] },
      tag: "services",
      roles: trainer,
      body: createServiceRequest,
      maxBodyBytes: bodyLimits.variables,
      handle: async (ask) => {
        const { body, caller } = ask;
        const seen = await services.create(
          {
            envName: body.envName,
            id: body.service_name || undefined,
            replicas: body.replicas || 1,
            variables: body.environment_variables ?? {},
            owner: body.owner,
            storage: body.storage_size ? (body.pvc_name ?? "") : null,
            container: body,
          },
          caller,
        );
        const { name, version } = seen.row.environment;
        const environment = await hub.resolve(`${name}@${version}`, caller).catch(() => null);
        return { ...record(seen, ask), env: environment === null ? null : toEnvironmentRecord(environment) };
      },
    }),
    route({
      method: "GET",
      path: "/env-service/:id/list",
      summary: "List services of an environment (`*` for all)",
      answer: answers.services.some,
      tag: "services",
      roles: trainer,
      params: id,
      handle: async (ask) => {
        const found = await services.list(ask.params.id === "*" ? "" : ask.params.id, ask.caller);
        return found.map((seen) => record(seen, ask));
      },
    }),
    route({
      ...endpointOf(table.getService),
      summary: "Get a service",
      answer: answers.services.one,
      tag: "services",
      roles: trainer,
      params: id,
      handle: async (ask) => record(await services.get(ask.params.id, ask.caller), ask),
    }),
    route({
      ...endpointOf(table.updateService),
      summary: "Change the number of replicas or the image, or add variables; new variables restart the replicas",
      answer: answers.services.one,
      audited: { event: "service.changed", of: (_, { params }) => [params.id] },
      tag: "services",
      roles: trainer,
      params: id,
      body: updateServiceRequest,
      maxBodyBytes: bodyLimits.variables,
      handle: async (ask) => {
        const { replicas, image, environment_variables: variables } = ask.body;
        const seen = await services.update(ask.params.id, { replicas, variables, image: image || undefined }, ask.caller);
        // The change has only begun, whatever the replicas' current status is.
        return { ...record(seen, ask), status: "Updating" };
      },
    }),
    route({
      ...endpointOf(table.deleteService),
      summary: "Delete a service and its replicas; `deleteStorage` deletes its storage too",
      answer: answers.deleted,
      audited: { event: "service.deleted", of: (_, { params }) => [params.id] },
      tag: "services",
      roles: trainer,
      params: id,
      query: z.object({ deleteStorage: z.enum(["true", "false"]).default("false") }),
      handle: async (ask) => {
        await services.remove(ask.params.id, ask.query.deleteStorage === "true", ask.caller);
        return "Deleted successfully";
      },
    }),
  ];
}

/** The service's JSON: the original's fields, then ours. */
function toRecord({ row, available }: ServiceState, url: string): ServiceRecord {
  return {
    id: row.id,
    env: minimalEnvironment(row),
    status: statusOf(row, available),
    created_at: row.createdAt,
    updated_at: row.updatedAt,
    replicas: row.replicas,
    available_replicas: available,
    service_url: url,
    owner: row.owner,
    environment_variables: row.variables,
    pvc_name: row.storage ?? "",
    environment: `${row.environment.name}@${row.environment.version}`,
    reason: row.reason,
  };
}
