import { createSecureContext, type SecureContext } from "node:tls";
import { Agent, buildConnector, type Dispatcher, ProxyAgent, request } from "undici";
import type { MachineVariables } from "../images/skopeo.ts";
import { tlsMaterial } from "./certificates.ts";
import { RegistryFailure } from "./failure.ts";
import type { Destinations, Role } from "./policy.ts";
import { proxyFor } from "./proxies.ts";

export interface TransportOptions {
  readonly destinations: Destinations;
  /** Variables for proxies and certificates. */
  readonly variables: MachineVariables;
}

export interface RegistryRequest {
  readonly role: Role;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** The fields of a form; without them, the request is a GET. */
  readonly form?: Readonly<Record<string, string>>;
}

export interface RegistryAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Dispatcher.ResponseData["body"];
}

const CONNECT_MS = 30_000;
const HEADERS_MS = 60_000;
/** Between two parts of a body. */
const SILENCE_MS = 60_000;
const MAX_HEADER_BYTES = 64 * 1024;

/** Single requests, without redirects, to where the images of one registry may come from. Each connection is checked when it is made. */
export class Transport implements AsyncDisposable {
  readonly #options: TransportOptions;
  readonly #agents = new Map<string, Dispatcher>();
  readonly #contexts = new Map<string, SecureContext>();

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /** Throws `RegistryFailure`: of the kind `refused` if the policy does not allow it, else `unreachable`. */
  async request(url: URL, { role, headers, signal, form }: RegistryRequest): Promise<RegistryAnswer> {
    const { destinations, variables } = this.#options;
    destinations.assertUrl(url, role);
    const proxy = proxyFor(url, variables);
    // The proxy resolves the name and makes the connection, so only what it is asked for can be checked.
    if (proxy !== null) await destinations.assertNotPrivate(url, role);
    try {
      const {
        statusCode,
        headers: received,
        body,
      } = await request(url, {
        method: form === undefined ? "GET" : "POST",
        headers: {
          "user-agent": "aenv",
          "accept-encoding": "identity",
          ...(form !== undefined && { "content-type": "application/x-www-form-urlencoded" }),
          ...headers,
        },
        ...(form !== undefined && { body: new URLSearchParams(form).toString() }),
        dispatcher: this.#agentFor(url, role, proxy),
        signal,
      });
      // What is not read ends with the connection, and is no error of anybody.
      body.on("error", () => {});
      return { status: statusCode, headers: received, body };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw (
        refusalIn(error) ??
        new RegistryFailure("unreachable", `${url.host} (${role}): ${detailOf(error)}`, { cause: error, isTemporary: true })
      );
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#agents.values()].map((agent) => agent.destroy()));
  }

  #agentFor(url: URL, role: Role, proxy: string | null): Dispatcher {
    const key = `${url.origin} ${role} ${proxy}`;
    const known = this.#agents.get(key);
    if (known !== undefined) return known;
    const limits = { headersTimeout: HEADERS_MS, bodyTimeout: SILENCE_MS, maxHeaderSize: MAX_HEADER_BYTES };
    const tls = { secureContext: this.#contextFor(url), rejectUnauthorized: !this.#options.destinations.isInsecure(url), allowH2: false };
    const agent =
      proxy === null
        ? new Agent({
            ...limits,
            connect: buildConnector({ ...tls, timeout: CONNECT_MS, lookup: this.#options.destinations.lookup(url, role) }),
          })
        : new ProxyAgent({ ...limits, uri: proxy, requestTls: tls, connectTimeout: CONNECT_MS });
    this.#agents.set(key, agent);
    return agent;
  }

  #contextFor({ host, protocol }: URL): SecureContext | undefined {
    if (protocol !== "https:") return undefined;
    const known = this.#contexts.get(host);
    if (known !== undefined) return known;
    const { ca, cert, key } = tlsMaterial(host, this.#options.variables);
    const context = createSecureContext({ ca: [...ca], ...(cert !== undefined && key !== undefined && { cert, key }) });
    this.#contexts.set(host, context);
    return context;
  }
}

/** The refusal by the policy, which the lookup of a connection throws. */
function refusalIn(error: unknown): RegistryFailure | null {
  for (let one = error, depth = 0; one instanceof Error && depth < 5; one = one.cause, depth++)
    if (one instanceof RegistryFailure) return one;
  return null;
}

function detailOf(error: unknown): string {
  const { code = "", message = "" } = error as { readonly code?: string; readonly message?: string };
  return [code, message].filter((part) => part !== "").join(" ");
}
