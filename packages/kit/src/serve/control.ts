import type { IncomingMessage, ServerResponse } from "node:http";
import {
  createInSandboxRequest,
  forkRequest,
  hostRoutes,
  matchesPath,
  messageOf,
  PlatformError,
  type Route,
  renameRequest,
  splitRef,
} from "@aenv/contract";
import { disconnectSignal, parseObject, readBody, sendControl, sendControlFailure } from "../http/exchange.ts";
import { type Host, toRecord } from "../instances/host.ts";
import type { Instance } from "../instances/instance.ts";
import { parseRequest } from "./trainer-api.ts";

export interface ControlRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The decoded segments of the path. */
  readonly segments: readonly string[];
}

type HostRouteName = keyof typeof hostRoutes;
type Handler = (control: ControlRequest, host: Host, body: () => Promise<Record<string, unknown>>) => unknown;

const IP = "127.0.0.1";

const handlers: Readonly<Record<HostRouteName, Handler>> = {
  describe: (_, host) => describeEnvironment(host),
  create: async ({ response }, host, body) => {
    const spec = parseRequest(createInSandboxRequest, await body());
    checkEnvironment(spec.envName, host);
    const [instance] = await unlessCancelled(response, host, [await host.create(spec, disconnectSignal(response))]);
    return toRecord(instance as Instance, IP);
  },
  list: (_, host) => ({ items: host.list().map((instance) => toRecord(instance, IP)) }),
  listOf: ({ segments }, host) => {
    const ref = idOf(segments);
    return ref === "*" || splitRef(ref).name === host.environment.name ? host.list().map((instance) => toRecord(instance, IP)) : [];
  },
  get: ({ segments }, host) => toRecord(host.get(idOf(segments)), IP),
  delete: async ({ segments }, host) => {
    const id = idOf(segments);
    if (!(await host.destroy(id))) throw new PlatformError("instance.not_found", `instance '${id}' not found in this process`);
    return "Deleted successfully";
  },
  fork: async ({ response, segments }, host, body) => {
    const { count, ids, fidelity = "state" } = parseRequest(forkRequest, await body());
    if (fidelity !== "state")
      throw new PlatformError(
        "instance.unsupported",
        `an environment forks its state; a fork with ${fidelity} needs a platform with sandboxes`,
      );
    const forks = await unlessCancelled(response, host, await host.fork(idOf(segments), ids ?? count ?? 1, disconnectSignal(response)));
    return forks.map((instance) => toRecord(instance, IP));
  },
  forkSpec: ({ response, segments }, host) => host.forkSpec(idOf(segments), disconnectSignal(response)),
  rename: async ({ segments }, host, body) => toRecord(host.rename(idOf(segments), parseRequest(renameRequest, await body()).id), IP),
};

const routes = Object.entries(hostRoutes) as [HostRouteName, Route][];

/** True if the path is about the instances of this process, rather than a route of one of them. */
export function isControl(segments: readonly string[]): boolean {
  return routes.some(([, { path }]) => matchesPath(path, segments));
}

/** Creates, lists, forks and deletes instances in this process. The envelope is the control port's, so that one client can use both. */
export async function answerControl(control: ControlRequest, host: Host, maxBodyBytes: number): Promise<void> {
  const { request, response, segments } = control;
  try {
    const found = routes.find(([, { method, path }]) => method === request.method && matchesPath(path, segments));
    if (found === undefined) throw new PlatformError("route.method_not_allowed", `${request.method} is not possible on ${request.url}`);
    const body = async () => parseObject(await readBody(request, maxBodyBytes));
    sendControl(response, await handlers[found[0]](control, host, body));
  } catch (error) {
    host.log(`${request.method} ${request.url}`, error);
    sendControlFailure(response, error);
  }
}

function idOf([, id = ""]: readonly string[]): string {
  return id;
}

/** Deletes instances whose client disconnected during setup: no client knows their ids. */
async function unlessCancelled(response: ServerResponse, host: Host, made: readonly Instance[]): Promise<readonly Instance[]> {
  if (!response.destroyed) return made;
  for (const { id } of made) await host.destroy(id, "the client that requested it disconnected");
  throw new PlatformError("request.cancelled", "the client that requested it disconnected");
}

/** What every instance of this process offers. */
async function describeEnvironment(host: Host): Promise<Record<string, unknown>> {
  const { name, version, catalogue, keepsStateInModules } = host.environment;
  const tools = [...host.environment.tools.values()].map((tool) => tool.descriptor);
  // Tasks may need data that is not there yet, so a failure is reported in the description.
  const listed = await host.tasks.common().then(
    (tasks) => ({ taskCount: tasks.size, tasksProblem: null }),
    (error: unknown) => ({ taskCount: null, tasksProblem: messageOf(error) }),
  );
  return { name, version, tools, catalogue, keepsStateInModules, ...listed };
}

function checkEnvironment(envName: string | undefined, host: Host): void {
  if (envName === undefined) return;
  const { name, version } = splitRef(envName);
  const own = host.environment;
  if (name === own.name && (version === "" || version === own.version)) return;
  throw new PlatformError("environment.not_found", `environment '${envName}' not found: this process serves '${own.name}@${own.version}'`);
}
