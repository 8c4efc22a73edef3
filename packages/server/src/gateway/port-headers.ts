import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isOriginOf } from "@aenv/contract";
import { isEndToEnd } from "./headers.ts";

// A presigned link forwards requests to a program in the sandbox unchanged, and the program sees its own address as the host. Links that
// are paths share the data port's host name: there, redirects and cookies are limited to the link, and a browser's cookies for other
// programs do not reach the program. At a link's own host name, the browser does that.

type Headers = Record<string, string | string[]>;

/** A link as the client addresses it, and the port behind it. */
export interface LinkPlace {
  /** `/port/<token>`, below the path of the server's public URL if that has one; empty at the link's own host name. */
  readonly prefix: string;
  readonly port: number;
}

/** Headers for the platform, which the program must not see. */
const PLATFORM = new Set(["host", "cookie", "origin", "expect", "aenvcore-mcpproxy-url", "aenvcore-envinstance-id"]);
/** Headers by which one response changes what a browser does with others of the same host, or of all hosts below a domain. */
const HOST_WIDE = new Set(["service-worker-allowed", "clear-site-data", "alt-svc", "strict-transport-security", "nel", "report-to"]);
const PLATFORM_TOKEN = /^bearer\s+aenv_/i;

/** The request's headers as the program behind the link sees them. */
export function headersForPort(request: IncomingMessage, more: Readonly<Record<string, string>>, place: LinkPlace): Headers {
  const own = `127.0.0.1:${place.port}`;
  const kept: Headers = { ...more, host: own };
  const named = (request.headers.connection ?? "").toLowerCase().split(/[\s,]+/);
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || !isEndToEnd(name) || named.includes(name) || PLATFORM.has(name) || Object.hasOwn(more, name)) continue;
    if (name === "authorization" && PLATFORM_TOKEN.test(String(value))) continue;
    kept[name] = value;
  }
  const { host, origin, cookie = "" } = request.headers;
  const cookies = cookiesFor(cookie, place);
  if (cookies !== "") kept.cookie = cookies;
  // Programs compare it with their host. The path of a link authorizes the page; at its own host, the program decides about other pages.
  if (origin !== undefined) kept.origin = place.prefix !== "" || isOriginOf(origin, host) ? `http://${own}` : origin;
  return kept;
}

/** The program's response headers for the client. */
export function answerThroughLink(headers: Headers, place: LinkPlace): Headers {
  const { location, "set-cookie": cookies, ...rest } = headers;
  const kept: Headers = {};
  for (const name in rest) if (!HOST_WIDE.has(name)) kept[name] = rest[name] as string | string[];
  // Pages that the program links to would learn the link's host name, which opens it.
  kept["referrer-policy"] ??= "same-origin";
  if (typeof location === "string") kept.location = locationFor(location, place);
  if (cookies !== undefined) kept["set-cookie"] = [cookies].flat().map((cookie) => cookieFrom(cookie, place));
  return kept;
}

const OWN_ADDRESS = /^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\]):(\d+)(?=[/?#]|$)/i;

/** A redirect to another path of the same program stays below the link. */
export function locationFor(location: string, { prefix, port }: LinkPlace): string {
  const own = OWN_ADDRESS.exec(location);
  if (own !== null && Number(own[1]) === port) return prefix + rooted(location.slice(own[0].length));
  return location.startsWith("/") && !location.startsWith("//") ? prefix + location : location;
}

function rooted(path: string): string {
  return path.startsWith("/") ? path : `/${path}`;
}

/** The cookie for the host that it is set at. Unless that is the link's own, it is renamed after the link and limited to the link's path. */
export function cookieFrom(cookie: string, place: LinkPlace): string {
  const [pair = "", ...attributes] = cookie.split(";");
  const kept = [`${markOf(place)}${pair.trim()}`];
  for (const attribute of attributes) {
    const [name = "", value = ""] = attribute.split("=", 2).map((part) => part.trim());
    if (/^domain$/i.test(name)) continue;
    kept.push(
      place.prefix !== "" && /^path$/i.test(name) ? `Path=${place.prefix}${value.startsWith("/") ? value : "/"}` : attribute.trim(),
    );
  }
  return kept.join("; ");
}

/** The browser's cookies that were set through this link, under the program's own names. */
export function cookiesFor(header: string, place: LinkPlace): string {
  const mark = markOf(place);
  const all = header.split(";").map((one) => one.trim());
  return all
    .filter((one) => one.startsWith(mark))
    .map((one) => one.slice(mark.length))
    .join("; ");
}

function markOf({ prefix }: LinkPlace): string {
  if (prefix === "") return "";
  return `aenv-${createHash("sha256").update(prefix).digest("hex").slice(0, 12)}-`;
}
