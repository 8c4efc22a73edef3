import {
  type CreateInstanceRequest,
  controlRoutes,
  createInstanceRequest,
  forkRequest,
  type InstanceRecord,
  PlatformError,
  parseDuration,
  renewRequest,
  resetRequest,
  type SnapshotRecord,
  type SnapshotRequest,
  snapshotRequest,
} from "@aenv/contract";
import { z } from "zod";
import type { ShownText } from "../config/shown-text.ts";
import type { DataUrl } from "../http/data-url.ts";
import type { Hub } from "../hub/hub.ts";
import { toRecord as toEnvironmentRecord } from "../hub/versions/record.ts";
import type { Instances } from "../instances/instances.ts";
import type { InstanceList } from "../instances/list.ts";
import type { InstanceLogs } from "../instances/logs.ts";
import type { RequestContext } from "../instances/request-context.ts";
import { roleKeysOf } from "../instances/role-links.ts";
import type { InstanceRow } from "../instances/row.ts";
import { sandboxOptionsOf } from "../instances/sandbox-options.ts";
import * as answers from "./answers.ts";
import { toClientError } from "./failure.ts";
import { type ApiRequest, type ApiRoute, bodyLimits, endpointOf, route } from "./route.ts";
import { toRecord as toSnapshotRecord } from "./snapshot-routes.ts";

export interface InstanceRouteOptions {
  readonly instances: Instances;
  readonly list: InstanceList;
  readonly logs: InstanceLogs;
  readonly hub: Hub;
  /** The data port's URL for clients. */
  readonly dataUrl: DataUrl;
  /** Removes from messages what clients must not read. */
  readonly shown: ShownText;
  readonly dataAccess: DataAccess;
  readonly runtime: Runtime;
}

/** What runs the instances, for the provenance of trajectories. */
interface Runtime {
  readonly engine: string;
  readonly isolated: boolean;
  readonly version: string;
}

/** What opens an instance on the data port: a token beside its id, or the id or a token; null for no access control. */
export type DataAccess = "token" | "id or token" | null;

/** The data port as an instance's record shows it. */
interface DataPort {
  readonly url: string;
  readonly access: DataAccess;
  readonly runtime: Runtime;
}

const id = z.object({ id: z.string().min(1).max(128) });
const wait = z.union([z.boolean(), z.string()]).optional();
const createBody = createInstanceRequest.extend({ wait });
const batchBody = createBody.extend({
  requests: z.array(createBody).min(1).max(1_000).optional(),
  count: z.int().min(1).max(1_000).optional(),
});
const pageQuery = z.object({
  status: z.string().optional(),
  envName: z.string().optional(),
  owner: z.string().optional(),
  label: z.union([z.string(), z.array(z.string())]).optional(),
  tree: z.enum(["true", "false"]).default("false").describe("lists children beside their roots"),
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
  after: z.string().optional(),
});

/** After this time the response has the instance's current status; the client polls. */
const LONGEST_WAIT_MS = 25_000;

export function instanceRoutes(options: InstanceRouteOptions): ApiRoute[] {
  const { instances, list, logs, hub, dataUrl, dataAccess: access, runtime } = options;
  const trainer = ["trainer", "publisher"] as const;

  async function create(
    body: z.infer<typeof createBody>,
    ask: ApiRequest<unknown, unknown, unknown>,
    key: string | undefined,
  ): Promise<InstanceRow> {
    // `wait` is not part of the idempotent request: a retry with the same key may wait longer.
    const { wait, ...request } = body;
    const waitMs = waitOf(wait);
    const row = await instances.create(request, contextOf(ask, key));
    return waitMs === 0 ? row : instances.started(row.id, waitMs, ask.caller, ask.signal);
  }

  const portFor = (ask: ApiRequest<unknown, unknown, unknown>): DataPort => ({ url: dataUrl(headerOf(ask, "host")), access, runtime });

  const record = (row: InstanceRow, ask: ApiRequest<unknown, unknown, unknown>) => toRecord(row, portFor(ask), null);

  /** The response to a creation has the whole environment; its deployConfig includes the request's sandbox options. */
  async function fullRecord(row: InstanceRow, ask: ApiRequest<unknown, unknown, CreateInstanceRequest>): Promise<InstanceRecord> {
    const { name, version } = row.environment;
    const environment = await hub.resolve(`${name}@${version}`, ask.caller).catch(() => null);
    if (environment === null) return record(row, ask);
    const env = toEnvironmentRecord(environment);
    const sandboxOptions = sandboxOptionsOf(environment.config, ask.body);
    return toRecord(row, portFor(ask), { ...env, deploy_config: { ...env.deploy_config, ...sandboxOptions } });
  }

  return [
    route({
      ...endpointOf(controlRoutes.createInstance),
      summary: "Create an instance; waits until it runs, unless `wait` is set otherwise",
      answer: answers.instances.one,
      audited: { event: "instance.created", of: (data) => idsOf([data]) },
      tag: "instances",
      roles: trainer,
      body: createBody,
      maxBodyBytes: bodyLimits.snapshot,
      handle: async (ask) => fullRecord(await create(ask.body, ask, headerOf(ask, "idempotency-key")), ask),
    }),
    route({
      ...endpointOf(controlRoutes.createInstances),
      summary: "Create many instances at once; the response has a result for each",
      answer: answers.instances.batch,
      audited: {
        event: "instance.created",
        of: (data) => idsOf((data as { items: readonly { data?: unknown }[] }).items.map((item) => item.data)),
      },
      tag: "instances",
      roles: trainer,
      body: batchBody,
      maxBodyBytes: bodyLimits.snapshot,
      handle: async (ask) => {
        const { requests, count, ...common } = ask.body;
        const all = requests ?? Array.from({ length: count ?? 1 }, () => common);
        const key = headerOf(ask, "idempotency-key");
        const items = await Promise.all(
          all.map(async (body, at) => {
            try {
              return { success: true, data: record(await create(body, ask, key && `${key}#${at}`), ask) };
            } catch (error) {
              const { code, message, retryable } = toClientError(error, ask.request, options.shown);
              return { success: false, message, error: { code, retryable } };
            }
          }),
        );
        return { items, created: items.filter((item) => item.success).length, failed: items.filter((item) => !item.success).length };
      },
    }),
    route({
      ...endpointOf(controlRoutes.pageInstances),
      summary: "List instances, a page at a time",
      answer: answers.instances.page,
      tag: "instances",
      roles: trainer,
      query: pageQuery,
      handle: async (ask) => {
        const page = await list.page({ ...ask.query, tree: ask.query.tree === "true" }, ask.caller);
        return { items: page.rows.map((row) => toRecord(row, portFor(ask), null)), next: page.next };
      },
    }),
    route({
      method: "GET",
      path: "/env-instance/:id/list",
      summary: "List instances of an environment (`*` for all), in the original's format",
      answer: answers.instances.listed,
      tag: "instances",
      roles: trainer,
      params: id,
      query: pageQuery,
      handle: async (ask) => {
        const ref = ask.params.id === "*" ? (ask.query.envName ?? "") : ask.params.id;
        const page = await list.page({ ...ask.query, tree: ask.query.tree === "true", envName: ref, limit: 1_000 }, ask.caller);
        const records = page.rows.map((row) => toRecord(row, portFor(ask), minimalEnvironment(row)));
        // The original's scheduler client wants `{items}` and is the only one that sends this header; its CLI wants the array.
        return headerOf(ask, "env-instance-trace-id") === undefined ? records : { items: records };
      },
    }),
    route({
      ...endpointOf(controlRoutes.getInstance),
      summary: "Get an instance; `wait` delays the response until it runs or has failed",
      answer: answers.instances.one,
      tag: "instances",
      roles: trainer,
      params: id,
      query: z.object({ wait: z.string().optional() }),
      handle: async (ask) => {
        const row = await instances.get(ask.params.id, ask.caller);
        const { query, caller, signal } = ask;
        const settled = query.wait === undefined ? row : await instances.untilSettled(row.id, waitOf(query.wait), caller, signal);
        // The original's command shows the environment's name from here.
        return toRecord(settled, portFor(ask), minimalEnvironment(settled));
      },
    }),
    route({
      ...endpointOf(controlRoutes.deleteInstance),
      summary: "Delete an instance",
      answer: answers.deleted,
      audited: { event: "instance.deleted", of: (_, { params }) => [params.id] },
      tag: "instances",
      roles: trainer,
      params: id,
      handle: async (ask) => {
        await instances.destroy(ask.params.id, ask.caller);
        return "Deleted successfully";
      },
    }),
    route({
      ...endpointOf(controlRoutes.renewInstance),
      summary: "Extend an instance's time to live, from now",
      answer: answers.instances.one,
      tag: "instances",
      roles: trainer,
      params: id,
      body: renewRequest,
      maxBodyBytes: bodyLimits.fields,
      handle: async (ask) => record(await instances.renew(ask.params.id, ask.body.ttl, ask.caller), ask),
    }),
    route({
      ...endpointOf(controlRoutes.resetInstance),
      summary: "Begin a new episode",
      answer: answers.instances.reset,
      tag: "instances",
      roles: trainer,
      params: id,
      body: resetRequest,
      maxBodyBytes: bodyLimits.fields,
      handle: async (ask) => instances.reset(ask.params.id, ask.body, contextOf(ask, undefined)),
    }),
    route({
      ...endpointOf(controlRoutes.snapshotInstance),
      summary: "Store a snapshot of an instance; without `name` and `fidelity`, the response is its state and nothing is stored",
      answer: answers.instances.snapshot,
      audited: { event: "snapshot.created", of: (data, { body }) => (isStored(body) ? [(data as SnapshotRecord).id] : []) },
      tag: "instances",
      roles: trainer,
      params: id,
      body: snapshotRequest,
      maxBodyBytes: bodyLimits.fields,
      handle: async (ask) => {
        const context = contextOf(ask, undefined);
        if (!isStored(ask.body)) return instances.snapshot(ask.params.id, context);
        return toSnapshotRecord(await instances.store(ask.params.id, ask.body, context));
      },
    }),
    route({
      ...endpointOf(controlRoutes.forkInstance),
      summary:
        "Fork an instance: create copies that continue from its current state; `fork_fidelity` of each says with what: for an environment in TypeScript the `state` unless the request says otherwise, for a program its `memory` if its sandbox can be copied so, else its `files`",
      answer: answers.instances.some,
      audited: { event: "instance.created", of: (data) => idsOf(data as readonly unknown[]) },
      tag: "instances",
      roles: trainer,
      params: id,
      body: forkRequest,
      maxBodyBytes: bodyLimits.fields,
      handle: async (ask) => {
        const { count = 1, fidelity } = ask.body;
        const rows = await instances.fork(ask.params.id, count, contextOf(ask, headerOf(ask, "idempotency-key")), fidelity);
        return rows.map((row) => toRecord(row, portFor(ask), null));
      },
    }),
    route({
      ...endpointOf(controlRoutes.listEvents),
      summary: "The events of an instance, with the reason of a failure",
      answer: answers.instances.events,
      tag: "instances",
      roles: trainer,
      params: id,
      handle: async (ask) => (await instances.get(ask.params.id, ask.caller)).events,
    }),
    route({
      ...endpointOf(controlRoutes.readLogs),
      summary: "The log of an instance's sandbox: the last lines, and with `follow` new ones as server-sent events",
      answer: { type: "text/plain", alsoType: "text/event-stream" },
      tag: "instances",
      roles: trainer,
      params: id,
      query: z.object({
        tail: z.coerce.number().int().min(0).max(10_000).default(100),
        follow: z.enum(["true", "false"]).default("false"),
      }),
      isRaw: true,
      handle: async (ask) =>
        logs.answer(await instances.get(ask.params.id, ask.caller), ask.query.tail, ask.query.follow === "true", ask.reply, ask.signal),
    }),
  ];
}

/** The instance's JSON: the original's fields, then ours. */
export function toRecord(row: InstanceRow, dataPort: DataPort, env: InstanceRecord["env"]): InstanceRecord {
  return {
    id: row.id,
    env,
    status: row.status,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
    // A host name that passes the original SDK's URL parser; the gateway compares it and never connects to it.
    ip: row.status === "Running" ? row.id : "",
    ttl: row.ttl,
    owner: row.owner,
    labels: row.labels,
    environment: `${row.environment.name}@${row.environment.version}`,
    // A replica lives as long as its service.
    ...(row.service === undefined ? { expires_at: row.expiresAt } : { service: row.service }),
    reason: row.reason,
    task: row.task,
    seed: row.seed,
    ...(row.forkFidelity !== undefined && { fork_fidelity: row.forkFidelity }),
    ...(row.startedFrom !== undefined && { started_from: row.startedFrom }),
    ...(row.parent !== undefined && { parent: row.parent, root: row.root, path: row.path }),
    ...(row.isFrozen === true && { frozen: true }),
    ...(row.warnings !== undefined && { warnings: [...row.warnings] }),
    ...(row.datasource !== "" && { datasource: row.datasource, image: row.image }),
    ...agentLinksOf(row, dataPort),
    data_url: dataPort.url,
    engine: dataPort.runtime.engine,
    isolated: dataPort.runtime.isolated,
    server_version: dataPort.runtime.version,
    ...(dataPort.access !== null && { data_access: dataPort.access }),
  };
}

/** One link for the agent of the instance, or one for that of each role. */
function agentLinksOf(
  row: InstanceRow,
  { url }: DataPort,
): Pick<InstanceRecord, "role_urls" | "a2a_url"> & { readonly agent_url: string | null } {
  const link = (key: string) => `${url}/agent/${key}/mcp`;
  const keys = roleKeysOf(row);
  if (keys === null) return { agent_url: link(row.agentKey), a2a_url: `${url}/agent/${row.agentKey}/` };
  return { agent_url: null, a2a_url: null, role_urls: Object.fromEntries(Object.entries(keys).map(([role, key]) => [role, link(key)])) };
}

/** The fields of an environment that are known without a lookup. */
export function minimalEnvironment(row: Pick<InstanceRow, "environment" | "createdAt">): InstanceRecord["env"] {
  const { name, version } = row.environment;
  return {
    id: `${name}-${version}`,
    name,
    description: "",
    version,
    code_url: "",
    status: 6,
    created_at: row.createdAt,
    updated_at: row.createdAt,
  };
}

function isStored({ name, fidelity }: SnapshotRequest): boolean {
  return name !== undefined || fidelity !== undefined;
}

function waitOf(value: boolean | string | undefined): number {
  if (value === false) return 0;
  if (value === undefined || value === true || value === "true") return LONGEST_WAIT_MS;
  if (value === "false") return 0;
  const ms = parseDuration(value);
  if (ms < 0) throw new PlatformError("request.invalid", `wait is '${value}'; it must not be negative`);
  return Math.min(ms, LONGEST_WAIT_MS);
}

function contextOf({ caller, signal }: ApiRequest<unknown, unknown, unknown>, key: string | undefined): RequestContext {
  return { caller, signal, ...(key !== undefined && { idempotencyKey: key }) };
}

function headerOf(ask: ApiRequest<unknown, unknown, unknown>, name: string): string | undefined {
  const value = ask.request.headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The ids of the instances that were created. */
function idsOf(records: readonly unknown[]): string[] {
  return records.flatMap((record) => (record === undefined ? [] : [(record as InstanceRecord).id]));
}
