import type { IncomingHttpHeaders } from "node:http";
import { fillPath, instanceRoutes, PlatformError } from "@aenv/contract";
import { type RoleKey, readAgentKey } from "../instances/role-links.ts";
import { decodeSegment, type RouteRule, routeNotFound, routeRuleFor } from "./route-rule.ts";

/** The instance, service or port that a request on the data port is for, and the API it uses. */
export type Destination =
  | { readonly api: "trainer"; readonly instanceId: string; readonly path: string }
  /** `role`: what the link says about a role of the instance; it has yet to be checked. */
  | { readonly api: "agent"; readonly agentKey: string; readonly role: RoleKey | null; readonly path: string }
  | {
      readonly api: "service";
      readonly serviceId: string;
      /** The tag of the replica that the card of the service has named. */
      readonly replica?: string;
      readonly path: string;
    }
  | {
      readonly api: "port";
      readonly token: string;
      readonly path: string;
      /** The link was used by its own host name, so its program has an origin of its own. */
      readonly isOwnHost: boolean;
    };

/** Where presigned links to ports inside sandboxes begin. */
export const PORT_LINKS = "/port/";

/** Where the routes of the OpenEnv protocol begin: `/openenv/<name@version>/…`, or `/openenv/<token>/<name@version>/…`. */
export const OPENENV = "/openenv/";

/** Only instances that are programs have it. */
const ROOT = "/";

const routeRule = routeRuleFor();

/** Throws for the root of an instance that is not a program: there, the sandbox has a route of the platform. */
export function checkRoot(path: string, isProgram: boolean): void {
  if (path === ROOT && !isProgram) throw routeNotFound(path);
}

/** Tools are all that an agent may use. */
export const { isAgentPath } = routeRule;

/**
 * Reads the destination from the path (`/env-instance/<id>/…`, `/env-service/<id>/…`, `/agent/<key>/…`, `/port/<token>/…`) or from the
 * original's headers. The URL in those headers is only compared: the call goes to the address in the instance's own row.
 */
export function readDestination(path: string, headers: IncomingHttpHeaders, rule: RouteRule = routeRule): Destination {
  const secondAt = path.indexOf("/", 1) + 1;
  const first = secondAt === 0 ? path.slice(1) : path.slice(1, secondAt - 1);
  const belowAt = secondAt === 0 ? -1 : path.indexOf("/", secondAt);
  const second = secondAt === 0 ? "" : belowAt < 0 ? path.slice(secondAt) : path.slice(secondAt, belowAt);
  const below = belowAt < 0 ? "/" : path.slice(belowAt);
  switch (first) {
    case "env-instance":
      if (below !== ROOT || second === "") rule.check(below);
      return { api: "trainer", instanceId: decodeSegment(second), path: below };
    case "env-service":
      return serviceDestination(decodeSegment(second), below, second, rule);
    case "agent": {
      const tools = below.endsWith("/") ? below.slice(0, -1) : below;
      if (!rule.isAgentPath(tools))
        throw new PlatformError("access.denied", "an agent link opens the tools at /mcp and A2A at /a2a, and nothing else");
      const { agentKey, role } = readAgentKey(decodeSegment(second));
      if (role === null) return { api: "agent", agentKey, role, path: tools };
      // The gateway chooses the path of the role: no request of an agent names one.
      if (tools !== instanceRoutes.mcp.path)
        throw new PlatformError("access.denied", "the link of a role opens its tools at /mcp and nothing else");
      return { api: "agent", agentKey, role, path: fillPath(instanceRoutes.roleMcp, { role: role.role }) };
    }
    case "port":
      // The path below a link is read by the program in the sandbox only, so it is passed on unchanged.
      return { api: "port", token: second, path: below, isOwnHost: false };
  }
  const instanceId = fromHeaders(headers);
  if (path !== ROOT) rule.check(path);
  return { api: "trainer", instanceId, path };
}

/** The tasks of A2A are in one replica, which the path names: `/env-service/<id>/replica/<tag>/a2a`. */
function serviceDestination(serviceId: string, below: string, raw: string, rule: RouteRule): Destination {
  const [, replica, path] = /^\/replica\/([0-9a-f]+)(\/.*)$/.exec(below) ?? [];
  if (replica !== undefined && path !== undefined && rule.isAgentPath(path)) return { api: "service", serviceId, replica, path };
  if (below !== ROOT || raw === "") rule.check(below);
  return { api: "service", serviceId, path: below };
}

function fromHeaders(headers: IncomingHttpHeaders): string {
  const named = single(headers["aenvcore-envinstance-id"]);
  const url = single(headers["aenvcore-mcpproxy-url"]);
  if (named === undefined && url === undefined) throw new PlatformError("request.invalid", "AEnvCore-MCPProxy-URL header is required");
  if (url === undefined) return named as string;
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) throw new PlatformError("request.invalid", "Invalid MCP server URL format");
  const host = new URL(url).hostname;
  // An instance's advertised ip is its id, so both headers must name the same instance.
  if (named !== undefined && named.toLowerCase() !== host) {
    throw new PlatformError("access.denied", "the AEnvCore-MCPProxy-URL header does not name the instance of AEnvCore-EnvInstance-ID");
  }
  return named ?? host;
}

function single(value: string | string[] | undefined): string | undefined {
  if (Array.isArray(value)) throw new PlatformError("request.invalid", "a header that names the instance was sent twice");
  return value === "" ? undefined : value;
}
