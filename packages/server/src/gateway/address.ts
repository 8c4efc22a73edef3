import type { IncomingHttpHeaders } from "node:http";
import { PlatformError } from "@aenv/contract";

/** The instance, service or port that a request on the data port is for, and the API it uses. */
export type Addressee =
  | { readonly api: "trainer"; readonly instanceId: string; readonly path: string }
  | { readonly api: "agent"; readonly agentKey: string; readonly path: string }
  | { readonly api: "service"; readonly serviceId: string; readonly path: string }
  | { readonly api: "port"; readonly token: string; readonly path: string };

/** Where presigned links to ports inside sandboxes begin. */
export const PORT_LINKS = "/port/";

/** Verbs behind an instance's id that belong to the control port. */
const CONTROL_VERBS = new Set(["fork", "opening", "list"]);

/**
 * Reads the addressee from the path (`/env-instance/<id>/…`, `/env-service/<id>/…`, `/agent/<key>/…`, `/port/<token>/…`) or from the original's headers. The URL in
 * those headers is only ever compared: where a call goes is decided by our own table.
 */
export function readAddressee(path: string, headers: IncomingHttpHeaders): Addressee {
  const [, first, second, ...rest] = path.split("/");
  const below = `/${rest.join("/")}`;
  if (first === "agent") {
    if (below !== "/mcp" && below !== "/mcp/")
      throw new PlatformError("access.denied", "an agent link opens the tools at /mcp and nothing else");
    return { api: "agent", agentKey: decode(second), path: "/mcp" };
  }
  // What is below a link is the sandbox's own program's to read, and is passed on as it was written.
  if (first === "port") return { api: "port", token: second ?? "", path: below };
  if (first === "env-instance") {
    demandInstanceRoute(rest, path);
    return { api: "trainer", instanceId: decode(second), path: below };
  }
  if (first === "env-service") {
    demandInstanceRoute(rest, path);
    return { api: "service", serviceId: decode(second), path: below };
  }
  const instanceId = fromHeaders(headers);
  demandInstanceRoute(path.split("/").slice(1), path);
  return { api: "trainer", instanceId, path };
}

/**
 * A sandbox that slots many also makes, copies and ends its slots by HTTP, and that is for the platform alone. It is as lenient
 * with escapes and slashes at the end as this must be strict.
 */
function demandInstanceRoute(segments: readonly string[], path: string): void {
  const below = segments.map(decode);
  if (below.at(-1) === "") below.pop();
  if (below.some((segment) => segment === "." || segment === "..")) throw new PlatformError("route.not_found", `${path} leads nowhere`);
  const [verb = ""] = below;
  if (below.length === 0 || (below.length === 1 && CONTROL_VERBS.has(verb)))
    throw new PlatformError("route.not_found", `${path} belongs to the control port`);
}

function fromHeaders(headers: IncomingHttpHeaders): string {
  const named = single(headers["aenvcore-envinstance-id"]);
  const url = single(headers["aenvcore-mcpproxy-url"]);
  if (named === undefined && url === undefined) throw new PlatformError("request.invalid", "AEnvCore-MCPProxy-URL header is required");
  if (url === undefined) return named as string;
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) throw new PlatformError("request.invalid", "Invalid MCP server URL format");
  const host = new URL(url).hostname;
  // An instance's advertised ip is its own id, so the two must say the same.
  if (named !== undefined && named.toLowerCase() !== host) {
    throw new PlatformError("access.denied", "the AEnvCore-MCPProxy-URL header does not name the instance of AEnvCore-EnvInstance-ID");
  }
  return named ?? host;
}

function single(value: string | string[] | undefined): string | undefined {
  if (Array.isArray(value)) throw new PlatformError("request.invalid", "a header that names the instance was sent twice");
  return value === "" ? undefined : value;
}

function decode(segment: string | undefined): string {
  if (segment === undefined || !segment.includes("%")) return segment ?? "";
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new PlatformError("route.not_found", "the path is badly escaped");
  }
}
