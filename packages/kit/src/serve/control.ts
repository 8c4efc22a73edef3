import type { IncomingMessage, ServerResponse } from "node:http";
import { createInstanceRequest, forkRequest, messageOf, PlatformError, splitRef } from "@aenv/contract";
import { parseObject, readBody, sendControl, sendControlFailure, untilGone } from "../http/exchange.ts";
import { type Host, toRecord } from "../instances/host.ts";
import type { Instance } from "../instances/instance.ts";
import { parseRequest } from "./trainer-api.ts";

export interface ControlVisit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** What stands behind `/env-instance`: no segment, an id, or an id and a verb. */
  readonly segments: readonly string[];
}

/** True if the path makes, lists or ends instances, rather than going to one of them. */
export function isControl(segments: readonly string[]): boolean {
  return segments.length <= 1 || (segments.length === 2 && ["list", "fork", "opening"].includes(segments[1] as string));
}

/** Makes and ends instances in this process, in the control plane's words, so that one client speaks to both. */
export async function answerControl(visit: ControlVisit, host: Host, maxBodyBytes: number): Promise<void> {
  try {
    sendControl(visit.response, await decide(visit, host, maxBodyBytes));
  } catch (error) {
    host.log(`${visit.request.method} ${visit.request.url}`, error);
    sendControlFailure(visit.response, error);
  }
}

async function decide({ request, response, segments }: ControlVisit, host: Host, maxBodyBytes: number): Promise<unknown> {
  const [id = "", verb] = segments;
  const ip = "127.0.0.1";
  const body = async () => parseObject(await readBody(request, maxBodyBytes));
  switch (`${request.method} ${segments.length === 0 ? "" : (verb ?? (id === "list" ? "items" : "one"))}`) {
    case "POST ": {
      const spec = parseRequest(createInstanceRequest, await body());
      demandSameEnvironment(spec.envName, host);
      const [instance] = await forSomeone(response, host, [await host.create(spec, untilGone(response))]);
      return toRecord(instance as Instance, ip);
    }
    case "GET ":
      return about(host);
    case "GET items":
      return { items: host.list().map((instance) => toRecord(instance, ip)) };
    case "GET list":
      return id === "*" || splitRef(id).name === host.blueprint.name ? host.list().map((instance) => toRecord(instance, ip)) : [];
    case "GET one":
      return toRecord(host.get(id), ip);
    case "DELETE one":
      if (!(await host.destroy(id))) throw new PlatformError("instance.not_found", `instance '${id}' not found in this process`);
      return "Deleted successfully";
    case "POST fork": {
      const { count, ids } = parseRequest(forkRequest, await body());
      const forks = await forSomeone(response, host, await host.fork(id, ids ?? count ?? 1, untilGone(response)));
      return forks.map((instance) => toRecord(instance, ip));
    }
    case "GET opening":
      return host.opening(id, untilGone(response));
    default:
      throw new PlatformError("route.method_not_allowed", `${request.method} is not possible on ${request.url}`);
  }
}

/** Instances whose maker went away while they were set up would be used by nobody and ended by nobody. */
async function forSomeone(response: ServerResponse, host: Host, made: readonly Instance[]): Promise<readonly Instance[]> {
  if (!response.destroyed) return made;
  for (const { id } of made) await host.destroy(id, "whoever asked for it has gone");
  throw new PlatformError("request.cancelled", "whoever asked for it has gone");
}

/** What every instance of this process offers, for those who have none yet. */
async function about(host: Host): Promise<Record<string, unknown>> {
  const { name, version, catalogue, keepsStateInModules } = host.blueprint;
  const tools = [...host.blueprint.tools.values()].map((tool) => tool.descriptor);
  // Tasks may be made of data that only comes later, so that is told and fails nothing.
  const listed = await host.tasks.common().then(
    (tasks) => ({ taskCount: tasks.size, tasksProblem: null }),
    (error: unknown) => ({ taskCount: null, tasksProblem: messageOf(error) }),
  );
  return { name, version, tools, catalogue, keepsStateInModules, ...listed };
}

function demandSameEnvironment(envName: string | undefined, host: Host): void {
  if (envName === undefined) return;
  const { name, version } = splitRef(envName);
  const own = host.blueprint;
  if (name === own.name && (version === "" || version === own.version)) return;
  throw new PlatformError("environment.not_found", `environment '${envName}' not found: this process serves '${own.name}@${own.version}'`);
}
