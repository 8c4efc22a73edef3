import {
  type CreateInstanceRequest,
  controlRoutes,
  type ErrorCode,
  headers,
  type InstanceRecord,
  isObject,
  isPlatformError,
} from "@aenv/contract";
import { EnvironmentError, ValidationError } from "../errors/errors.ts";
import { readFailure } from "../errors/failure.ts";
import { StatusError } from "../errors/http-errors.ts";
import { randomId } from "./ids.ts";
import { readInstance } from "./records.ts";

/** The result of one request of a batch. */
export type CreateResult = { readonly instance: InstanceRecord; readonly error: null } | { readonly instance: null; readonly error: Error };

type Wait = boolean | string | undefined;

interface BatchCall {
  readonly method: "POST";
  readonly path: string;
  readonly doing: string;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly notFound: ErrorCode;
}

/** Sends the requests. */
export interface BatchSender {
  send(batch: BatchCall): Promise<unknown>;
  createOne(request: CreateInstanceRequest): Promise<InstanceRecord>;
}

/** The maximum of one batch on an AEnv platform. */
const BATCH_SIZE = 1_000;
/** Concurrent requests to a server without batches. */
const SINGLES_CONCURRENCY = 16;

/** Creates the instances by as few requests as possible; the results come in the order of the requests. */
export async function createBatch(
  requests: readonly CreateInstanceRequest[],
  { wait }: { readonly wait?: Wait },
  to: BatchSender,
): Promise<CreateResult[]> {
  const results: CreateResult[] = [];
  for (let at = 0; at < requests.length; at += BATCH_SIZE) {
    const part = requests.slice(at, at + BATCH_SIZE);
    try {
      results.push(...readResults(await to.send(batchCall(part, wait)), part));
    } catch (error) {
      if (isUnknownRoute(error)) return [...results, ...(await createSingly(requests.slice(at), to))];
      // Instances of the earlier parts are returned, because the caller must end them.
      if (results.length === 0) throw error;
      results.push(...part.map(() => failed(error)));
    }
  }
  return results;
}

/** The original's control plane requires `datasource` and `ttl` in every request. */
export function createBody(request: CreateInstanceRequest, wait: Wait): Record<string, unknown> {
  return { ...request, datasource: request.datasource ?? "", ttl: request.ttl ?? "", ...(wait !== undefined && { wait }) };
}

function batchCall(requests: readonly CreateInstanceRequest[], wait: Wait): BatchCall {
  const key = randomId();
  return {
    method: controlRoutes.createInstances.method,
    path: controlRoutes.createInstances.path,
    doing: `create ${requests.length} instances`,
    body: { requests: requests.map((request) => createBody(request, wait)) },
    headers: { [headers.traceId]: key, "idempotency-key": key },
    notFound: "instance.unsupported",
  };
}

function isUnknownRoute(error: unknown): boolean {
  return isPlatformError(error, "instance.unsupported", "route.not_found", "route.method_not_allowed");
}

/** One request for each instance, for the original's services. */
async function createSingly(requests: readonly CreateInstanceRequest[], to: BatchSender): Promise<CreateResult[]> {
  const results: CreateResult[] = [];
  let next = 0;
  const work = async () => {
    for (let at = next++; at < requests.length; at = next++) {
      const creating = to.createOne(requests[at] as CreateInstanceRequest);
      results[at] = await creating.then((instance) => ({ instance, error: null }), failed);
    }
  };
  await Promise.all(Array.from({ length: Math.min(SINGLES_CONCURRENCY, requests.length) }, work));
  return results;
}

function readResults(data: unknown, requests: readonly CreateInstanceRequest[]): CreateResult[] {
  const items = isObject(data) ? data.items : null;
  if (!Array.isArray(items) || items.length !== requests.length) {
    throw new ValidationError(`the response to creating ${requests.length} instances has another number of items`);
  }
  return items.map((item, at) => readResult(item, requests[at]?.envName ?? ""));
}

function readResult(item: unknown, envName: string): CreateResult {
  if (isObject(item) && item.success === true) return { instance: readInstance(item.data), error: null };
  const { message, isNamed: _, ...rest } = readFailure(new StatusError(500, JSON.stringify(item ?? null), null), "environment.not_found");
  return failed(new EnvironmentError(`could not create an instance of '${envName}': ${message}`, { ...rest, envName }));
}

function failed(error: unknown): CreateResult {
  return { instance: null, error: error instanceof Error ? error : new Error(String(error)) };
}
