import { lookup as systemLookup } from "node:dns";
import type { IncomingMessage } from "node:http";
import { isIP, type LookupFunction } from "node:net";
import { isPublicAddress } from "@aenv/contract";

/** Where the code of an environment may connect to. */
export interface OutgoingPolicy {
  /** Hosts with private or loopback addresses that are allowed nevertheless: `10.0.0.5`, `tools.internal` or `127.0.0.1:8080`. */
  readonly allowPrivate?: readonly string[] | undefined;
}

export interface OutgoingRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
}

/** The request was refused or broke off before its first byte was sent, so it may be repeated. */
export class NotSent extends Error {
  override readonly name = "NotSent";
}

/** The name of a URL's host, without the brackets of an IPv6 address. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

/** Why this URL may not be requested, or null. Names are checked again when they are resolved. */
export function urlProblem(url: URL, policy: OutgoingPolicy): string | null {
  if (url.protocol !== "http:" && url.protocol !== "https:") return `${url.protocol}// is not supported; use https:// or http://`;
  if (url.username !== "" || url.password !== "") return "it contains a user name or password; send them as a header";
  const host = hostOf(url);
  if (isAllowed(url, policy)) return null;
  if (host === "localhost" || host.endsWith(".localhost")) return refusal(url, "a loopback address");
  return isIP(host) === 0 || isPublicAddress(host) ? null : refusal(url, "a private address");
}

/**
 * Sends a request and returns the answer with its body unread. A name is resolved once, its addresses are checked, and these are
 * connected to. Redirects are errors: they would lead to an address that nobody has named.
 */
export async function sendRequest(url: URL, { method, headers, body, signal }: OutgoingRequest, policy: OutgoingPolicy) {
  const problem = urlProblem(url, policy);
  if (problem !== null) throw new NotSent(problem);
  const { request } = url.protocol === "https:" ? await import("node:https") : await import("node:http");
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    let hasConnected = false;
    const sent = request(url, {
      method,
      headers,
      lookup: checkedLookup(url, policy),
      agent: false,
      ...(signal !== undefined && { signal }),
    });
    sent.once("socket", (socket) => {
      socket.once("connect", () => {
        hasConnected = true;
      });
    });
    sent.once("response", resolve);
    sent.on("error", (error) => {
      if (signal?.aborted) reject(signal.reason);
      else reject(hasConnected ? error : new NotSent(error.message, { cause: error }));
    });
    sent.end(body);
  });
  const status = answer.statusCode ?? 0;
  if (status >= 300 && status < 400 && status !== 304) {
    answer.destroy();
    throw new Error(`${url.origin} redirects to ${answer.headers.location ?? "another address"}; name that address instead`);
  }
  return answer;
}

function checkedLookup(url: URL, policy: OutgoingPolicy): LookupFunction {
  return (host, options, callback) => {
    systemLookup(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, "");
      const allowed = isAllowed(url, policy) ? found : found.filter(({ address }) => isPublicAddress(address));
      const [first] = allowed;
      if (first === undefined) return callback(new Error(refusal(url, `the private address ${found[0]?.address ?? "(none)"}`)), "");
      if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

function isAllowed(url: URL, { allowPrivate = [] }: OutgoingPolicy): boolean {
  const host = hostOf(url);
  const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
  const names = [host, `${host}:${port}`, `[${host}]:${port}`];
  return allowPrivate.some((one) => names.includes(one.toLowerCase()));
}

function refusal(url: URL, what: string): string {
  return `${url.host} has ${what}, which is refused; name the host in allowPrivate if it is meant`;
}
