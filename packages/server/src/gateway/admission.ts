import type { IncomingHttpHeaders } from "node:http";
import { type HostRule, isPlatformError, PlatformError } from "@aenv/contract";
import type { Access, Caller } from "../access/access.ts";
import { maySee } from "../instances/instances.ts";
import type { Targets } from "../instances/targets.ts";
import type { OpenPortLink, PortLinks } from "../ports/links.ts";
import { maySee as maySeeService, notFound } from "../services/services.ts";
import { readSession, tagOf } from "../services/sessions.ts";
import type { ServiceTargets } from "../services/targets.ts";
import type { Call, Ready } from "./call.ts";
import { type Destination, isAgentPath, PORT_LINKS, readDestination } from "./destination.ts";
import { asksForWebSocket } from "./handshake.ts";
import { linkNotFound, refusalOf } from "./refusal.ts";

export interface AdmissionOptions {
  readonly targets: Targets;
  readonly services: ServiceTargets;
  readonly links: PortLinks;
  readonly access: Access;
  /** An unguessable id is enough to enter, as the original's clients need; off, a token is asked for here too. */
  readonly idsAreKeys: boolean;
  readonly hostRule: HostRule;
}

/** A presigned link that is valid now, and its token. */
export type OpenLink = OpenPortLink & { readonly token: string };

/** Where a call that was let in goes. */
export interface Admitted {
  readonly target: Ready;
  readonly destination: Destination;
  /** The sandbox's own path. */
  readonly path: string;
  /** Set if a presigned link is used: the call goes to the link's port of the sandbox, and to nothing else. */
  readonly link?: OpenLink;
  /** Set for a service: the session's id as its replica knows it, and what stands before it towards the client. */
  readonly session?: { readonly tag: string; readonly id: string | null } | undefined;
}

type InstanceDestination = Exclude<Destination, { api: "service" | "port" }>;
export type MaybePromise<T> = T | Promise<T>;

/** Decides who may go where, for both paths through the gateway. */
export class Admission {
  readonly #options: AdmissionOptions;
  #isDraining = false;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  drain(): void {
    this.#isDraining = true;
  }

  /** Where the call goes, if it may; null for the gateway's own health. At once if memory knows, as it nearly always does. */
  admit(call: Call, url: string, headers: IncomingHttpHeaders, rawHeaders?: readonly string[]): MaybePromise<Admitted | null> {
    this.#options.hostRule.check(headers, rawHeaders);
    if (!url.startsWith(PORT_LINKS)) demandPlainHttp(headers);
    const at = url.indexOf("?");
    const path = at < 0 ? url : url.slice(0, at);
    if (path === "/health" && !namesInstance(headers)) return null;
    if (this.#isDraining) throw new PlatformError("server.draining", "this server is shutting down; ask another, or later");
    const destination = readDestination(path, headers);
    call.destination = destination;
    const query = at < 0 ? "" : url.slice(at);
    if (destination.api === "service") return this.#admitToService(call, destination, query, headers);
    if (destination.api === "port") return this.#admitToPort(destination, query);
    const target = this.#peek(destination, headers) ?? this.#find(call, destination, headers);
    return target instanceof Promise ? target.then((found) => admitTo(found, destination, query)) : admitTo(target, destination, query);
  }

  /** Why a sandbox did not answer. Where it is and how it is spoken to is nobody else's business. */
  async explainLoss({ target, destination, link, session }: Admitted, cause: Error): Promise<PlatformError> {
    // Memory may be behind: another replica may have ended the instance, or its sandbox may just have died.
    const now = await this.#options.targets.find(target.instanceId);
    if (now.kind !== "ready") {
      const isSession = destination.api === "service" && session != null && session.id !== null;
      const { code, message } = isSession ? sessionNotFound(destination.serviceId) : refusalOf(now, destination);
      return new PlatformError(code, message, { cause });
    }
    if (link !== undefined) return portLoss(link.port, cause);
    return new PlatformError("sandbox.lost", "Failed to forward request to MCP server: the instance's sandbox does not answer", { cause });
  }

  /** A running instance that memory knows, where no token is to be looked at. */
  #peek(destination: InstanceDestination, headers: IncomingHttpHeaders): Ready | null {
    if (destination.api === "agent" || this.#asksForToken(headers)) return null;
    const target = this.#options.targets.peek(destination.instanceId);
    return target?.kind === "ready" ? target : null;
  }

  #asksForToken({ authorization }: IncomingHttpHeaders): boolean {
    const { access, idsAreKeys } = this.#options;
    return access.isOn && (authorization !== undefined || !idsAreKeys);
  }

  /** The addressed instance, if the caller may use it. */
  async #find(call: Call, destination: InstanceDestination, headers: IncomingHttpHeaders): Promise<Ready> {
    const { targets, access } = this.#options;
    const { authorization } = headers;
    const target =
      destination.api === "agent"
        ? await targets.findByAgentKey(destination.agentKey)
        : (targets.peek(destination.instanceId) ?? (await targets.find(destination.instanceId)));
    if (destination.api === "trainer" && this.#asksForToken(headers)) {
      const caller = await access.identify(authorization);
      call.owner = caller.owner;
      this.#demandRole(caller, destination);
      if (target.kind !== "unknown" && !maySee(target.row, caller)) throw refusalOf({ kind: "unknown" }, destination);
    }
    if (target.kind === "ready") return target;
    throw refusalOf(target, destination);
  }

  /** To a replica of the service. Its name may be guessed, so where tokens are in use one is always asked for. */
  async #admitToService(
    call: Call,
    destination: Extract<Destination, { api: "service" }>,
    query: string,
    headers: IncomingHttpHeaders,
  ): Promise<Admitted> {
    const { services, access } = this.#options;
    const caller = await access.identify(headers.authorization);
    call.owner = caller.owner;
    this.#demandRole(caller, destination);
    const row = await services.get(destination.serviceId);
    if (!maySeeService(row, caller)) throw notFound(destination.serviceId);
    const given = headers["mcp-session-id"];
    if (given === undefined) {
      const target = await services.pick(row);
      return { ...admitTo(target, destination, query), session: { tag: tagOf(target.instanceId), id: null } };
    }
    const session = readSession(String(given));
    const target = session === null ? null : await services.withSession(row, session.tag);
    if (session === null || target === null) throw sessionNotFound(destination.serviceId);
    return { ...admitTo(target, destination, query), session };
  }

  /** The link is all that is asked for: whoever made it was allowed to. */
  async #admitToPort(destination: Extract<Destination, { api: "port" }>, query: string): Promise<Admitted> {
    const { links, targets } = this.#options;
    const link = await links.find(destination.token);
    if (link === null) throw linkNotFound();
    const target = targets.peek(link.instanceId) ?? (await targets.find(link.instanceId));
    if (target.kind === "unknown" || target.row.createdAt !== link.instanceCreatedAt) throw linkNotFound();
    if (target.kind !== "ready") throw refusalOf(target, destination);
    // In a process that many instances share, a port would be everybody's.
    if (target.row.slot?.isOwnSandbox !== true) throw linkNotFound();
    return { target, destination, path: `${destination.path}${query}`, link: { ...link, token: destination.token } };
  }

  /** Tools are all that an agent's token opens, by whichever URL it comes. */
  #demandRole(caller: Caller, { path }: Destination): void {
    this.#options.access.demand(caller, "trainer", "publisher", ...(isAgentPath(path) ? (["agent"] as const) : []));
  }
}

function sessionNotFound(serviceId: string): PlatformError {
  const message = `service '${serviceId}' has no such MCP session: it was never opened, or the replica that held it is gone; initialize a new one`;
  return new PlatformError("session.not_found", message);
}

function admitTo(target: Ready, destination: Destination, query: string): Admitted {
  return { target, destination, path: `${target.prefix}${destination.path}${query}` };
}

function portLoss(port: number, cause: Error): PlatformError {
  return isPlatformError(cause, "sandbox.port_closed")
    ? new PlatformError(
        "sandbox.port_closed",
        `nothing in the sandbox listens on port ${port} of 127.0.0.1; start its program, then try again`,
      )
    : new PlatformError("sandbox.lost", `the program on port ${port} closed the connection without a complete answer`, { cause });
}

/** Instances are spoken to by plain HTTP; only a program behind a presigned link may serve WebSocket. */
function demandPlainHttp(headers: IncomingHttpHeaders): void {
  if (!asksForWebSocket({ headers })) return;
  throw new PlatformError(
    "request.invalid",
    "WebSocket is carried through presigned links only; for tools use MCP's Streamable HTTP at /mcp",
  );
}

function namesInstance(headers: IncomingHttpHeaders): boolean {
  return headers["aenvcore-mcpproxy-url"] !== undefined || headers["aenvcore-envinstance-id"] !== undefined;
}
