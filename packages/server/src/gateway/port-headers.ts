import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isEndToEnd } from "./headers.ts";

// A presigned link forwards requests to a program in the sandbox unchanged, but all links share the data port's host name. So the
// program sees its own address as the host, its redirects and cookies are limited to its link, and a browser's cookies for other
// programs at the same host do not reach it.

type Headers = Record<string, string | string[]>;

/** A link as the client addresses it, and the port behind it. */
export interface LinkPlace {
  /** `/port/<token>`, below the path of the server's public URL if that has one. */
  readonly prefix: string;
  readonly port: number;
}

/** Headers for the platform, which the program must not see. */
const PLATFORM = new Set(["host", "cookie", "origin", "expect", "aenvcore-mcpproxy-url", "aenvcore-envinstance-id"]);
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
  const cookie = cookiesFor(request.headers.cookie ?? "", place);
  if (cookie !== "") kept.cookie = cookie;
  // Programs compare it with their host. The link itself authorizes the page.
  if (request.headers.origin !== undefined) kept.origin = `http://${own}`;
  return kept;
}

/** The program's response headers for the client. */
export function answerThroughLink(headers: Headers, place: LinkPlace): Headers {
  const { location, "set-cookie": cookies, ...kept } = headers;
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

/** The cookie renamed after its link, with a path that limits it to the link. */
export function cookieFrom(cookie: string, place: LinkPlace): string {
  const [pair = "", ...attributes] = cookie.split(";");
  const kept = [`${markOf(place)}${pair.trim()}`];
  for (const attribute of attributes) {
    const [name = "", value = ""] = attribute.split("=", 2).map((part) => part.trim());
    if (/^domain$/i.test(name)) continue;
    kept.push(/^path$/i.test(name) ? `Path=${place.prefix}${value.startsWith("/") ? value : "/"}` : attribute.trim());
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
  return `aenv-${createHash("sha256").update(prefix).digest("hex").slice(0, 12)}-`;
}
