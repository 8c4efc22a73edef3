import type { IncomingHttpHeaders } from "node:http";
import {
  checkSingleHost,
  type HostRule,
  headers,
  instancePrefix,
  instanceRoutes,
  isPlatformError,
  PlatformError,
  servicePrefix,
} from "@aenv/contract";
import type { Access, Caller } from "../access/access.ts";
import { asksForWebSocket } from "../http/upgrade.ts";
import type { Container } from "../instances/containers.ts";
import { maySee } from "../instances/instances.ts";
import type { RewardPhases } from "../instances/reward-phases.ts";
import { isRoleKey } from "../instances/role-links.ts";
import type { InstanceRow } from "../instances/row.ts";
import type { Targets } from "../instances/targets.ts";
import { maySee as maySeeService, notFound } from "../services/services.ts";
import { readSession, tagOf } from "../services/sessions.ts";
import type { ServiceTargets } from "../services/targets.ts";
import type { Call, Ready } from "./call.ts";
import { checkRoot, type Destination, isAgentPath, PORT_LINKS, readDestination } from "./destination.ts";
import type { LinkHosts } from "./ports/link-hosts.ts";
import type { OpenPortLink, PortLinks } from "./ports/links.ts";
import { linkNotFound, refusalOf } from "./refusal.ts";
import { routeNotFound } from "./route-rule.ts";

export interface AdmissionOptions {
  readonly targets: Targets;
  readonly services: ServiceTargets;
  readonly links: PortLinks;
  readonly linkHosts: LinkHosts;
  readonly access: Access;
  /**
   * True: an instance's id, which cannot be guessed, gives access to it while the token that created the instance is valid, as the
   * original's clients need. False: a token is required too.
   */
  readonly idsAreKeys: boolean;
  /** Where clients reach the data port; null if that is the address that they name. */
  readonly publicUrl: string | null;
  readonly hostRule: HostRule;
  /** Rewards may have another policy for outgoing connections. */
  readonly rewardPhases?: Pick<RewardPhases, "enter" | "left">;
  /** The sandbox of an instance's task, for links that lead there; null if there is none now. Workers serve no links. */
  readonly findTask?: (row: InstanceRow, container: Container | null) => Promise<{ readonly id: string } | null>;
}

/** A presigned link that is valid now, how it was used, and the sandbox that it leads to. */
export type OpenLink = OpenPortLink & { readonly token: string; readonly isOwnHost: boolean; readonly sandboxId: string };

export interface GatewayRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as received; undefined if the parser has refused duplicates. */
  readonly rawHeaders?: readonly string[];
}

/** A call that was admitted, and where it goes. */
export interface Admitted {
  readonly target: Ready;
  readonly destination: Destination;
  /** The path that is requested from the sandbox. */
  readonly path: string;
  /** Set if a presigned link is used: the call goes to the link's port of the sandbox, and to nothing else. */
  readonly link?: OpenLink;
  /** Set for a service: the MCP session's id in its replica, and the tag before the id that clients see. */
  readonly session?: { readonly tag: string; readonly id: string | null } | undefined;
}

type InstanceDestination = Exclude<Destination, { api: "service" | "port" }>;
export type MaybePromise<T> = T | Promise<T>;

/** Authorizes calls and finds their instances, for both paths through the gateway. */
export class Admission {
  readonly #options: AdmissionOptions;
  #isDraining = false;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  drain(): void {
    this.#isDraining = true;
  }

  /** Throws if the call is refused; null for the gateway's own health. Synchronous if the instance is cached, as it is for nearly all calls. */
  admit(call: Call, request: GatewayRequest): MaybePromise<Admitted | null> {
    const { url = "/", headers } = request;
    const at = url.indexOf("?");
    const path = at < 0 ? url : url.slice(0, at);
    const ownToken = this.#options.linkHosts.tokenIn(headers.host);
    if (ownToken !== null) {
      if (request.rawHeaders !== undefined) checkSingleHost(request.rawHeaders);
      // Everything at the host of a link is a path of its program.
      if (!url.startsWith("/")) throw routeNotFound(path);
      call.destination = { api: "port", token: ownToken, path, isOwnHost: true };
      this.#checkDraining();
      return this.#admitToPort(call.destination, at < 0 ? "" : url.slice(at), headers);
    }
    this.#options.hostRule.check(headers, request.rawHeaders);
    if (!url.startsWith(PORT_LINKS)) {
      checkPlainHttp(headers);
      // Pages at the data port's origin are those of programs behind links.
      this.#options.hostRule.checkPage(request, "none");
    }
    if (path === "/health" && !namesInstance(headers)) return null;
    this.#checkDraining();
    const destination = readDestination(path, headers);
    call.destination = destination;
    const query = at < 0 ? "" : url.slice(at);
    if (destination.api === "service") return this.#admitToService(call, destination, query, headers);
    if (destination.api === "port") return this.#admitToPort(destination, query, headers);
    const target = this.#peek(destination, headers) ?? this.#find(call, destination, headers);
    if (target instanceof Promise) return target.then((found) => this.#enterPhase(call, admitTo(found, destination, query)));
    return this.#enterPhase(call, admitTo(target, destination, query));
  }

  #checkDraining(): void {
    if (this.#isDraining) throw new PlatformError("server.draining", "this server is shutting down; retry later, or at another server");
  }

  /**
   * The computation of a reward may have another policy for outgoing connections. It begins before the sandbox gets the request, and ends
   * before the sandbox gets the next call.
   */
  #enterPhase(call: Call, admitted: Admitted): MaybePromise<Admitted> {
    const { rewardPhases } = this.#options;
    if (rewardPhases === undefined) return admitted;
    const { row } = admitted.target;
    if (!REWARD_PATHS.includes(admitted.destination.path)) return rewardPhases.left(row)?.then(() => admitted) ?? admitted;
    const entering = rewardPhases.enter(row);
    if (entering === null) return admitted;
    return entering.then((leave) => {
      call.onEnd = leave;
      return admitted;
    });
  }

  /** Why a sandbox did not answer, without details of its address or connection. */
  async explainLoss({ target, destination, link, session }: Admitted, cause: Error): Promise<PlatformError> {
    // The cache may be out of date: another server may have ended the instance, or its sandbox has just died.
    const now = await this.#options.targets.find(target.instanceId);
    if (now.kind !== "ready") {
      const isSession = destination.api === "service" && session != null && session.id !== null;
      // A replica that the engine runs is no instance.
      if (destination.api === "service" && now.kind === "unknown" && !isSession)
        return new PlatformError("service.unavailable", `the replica of service '${destination.serviceId}' does not answer; try again`, {
          cause,
        });
      const { code, message } = isSession ? sessionNotFound(destination.serviceId) : refusalOf(now, destination);
      // Whether the failure is in the row already is a matter of milliseconds: the call has lost its sandbox in any case.
      return new PlatformError(code === "instance.failed" ? "sandbox.lost" : code, message, { cause });
    }
    if (link !== undefined) return portLoss(link.port, cause);
    return new PlatformError("sandbox.lost", "Failed to forward request to MCP server: the instance's sandbox does not answer", { cause });
  }

  /** A cached running instance, if the call needs no token check. */
  #peek(destination: InstanceDestination, headers: IncomingHttpHeaders): Ready | null {
    if (destination.api === "agent" || this.#needsToken(headers)) return null;
    const target = this.#options.targets.peek(destination.instanceId);
    return target?.kind === "ready" && this.#isOpenNow(target.row) ? target : null;
  }

  /** Whether the id of an instance is known to be a key to it, without a read of the store. */
  #isOpenNow({ tokenId, service }: InstanceRow): boolean {
    const { access } = this.#options;
    if (!access.isOn) return true;
    return tokenId === undefined ? service === undefined : access.tokens.isKnownValid(tokenId);
  }

  /** What opens an instance without a token of the caller, which is its id or a link, ends with the token that created the instance. */
  async #assertOpen(row: InstanceRow): Promise<void> {
    const { access } = this.#options;
    if (this.#isOpenNow(row)) return;
    if (row.tokenId !== undefined && (await access.tokens.isValid(row.tokenId))) return;
    const why =
      row.tokenId === undefined
        ? `instance '${row.id}' is a replica of the service '${row.service}', whose id is not a key`
        : `the token that created instance '${row.id}' was revoked or has expired`;
    throw new PlatformError("access.unauthenticated", `${why}; send a valid token of its owner`);
  }

  #needsToken({ authorization }: IncomingHttpHeaders): boolean {
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
    if (destination.api === "trainer" && this.#needsToken(headers)) {
      const caller = await access.identify(authorization);
      call.owner = caller.owner;
      this.#checkRole(caller, destination);
      if (target.kind !== "unknown" && !maySee(target.row, caller)) throw refusalOf({ kind: "unknown" }, destination);
    } else if (target.kind === "ready") await this.#assertOpen(target.row);
    if (destination.api === "agent" && target.kind !== "unknown") checkRoleLink(target.row, destination);
    if (target.kind === "ready") return target;
    throw refusalOf(target, destination);
  }

  /** Chooses a replica of the service. A service's name can be guessed, so with access control on a token is always required. */
  async #admitToService(
    call: Call,
    destination: Extract<Destination, { api: "service" }>,
    query: string,
    headers: IncomingHttpHeaders,
  ): Promise<Admitted> {
    const { services, access } = this.#options;
    const caller = await access.identify(headers.authorization);
    call.owner = caller.owner;
    this.#checkRole(caller, destination);
    const row = await services.get(destination.serviceId);
    if (!maySeeService(row, caller)) throw notFound(destination.serviceId);
    if (destination.replica !== undefined) {
      const target = await services.withSession(row, destination.replica);
      if (target === null) throw replicaNotFound(destination.serviceId);
      return this.#enterPhase(call, admitTo(target, destination, query));
    }
    const given = headers["mcp-session-id"];
    if (given === undefined) {
      const target = await services.pick(row);
      return this.#enterPhase(call, { ...admitTo(target, destination, query), session: { tag: tagOf(target.instanceId), id: null } });
    }
    const session = readSession(String(given));
    const target = session === null ? null : await services.withSession(row, session.tag);
    if (session === null || target === null) throw sessionNotFound(destination.serviceId);
    return this.#enterPhase(call, { ...admitTo(target, destination, query), session });
  }

  /** The link itself is the credential: rights were checked when it was created. */
  async #admitToPort(destination: Extract<Destination, { api: "port" }>, query: string, headers: IncomingHttpHeaders): Promise<Admitted> {
    const { links, targets } = this.#options;
    // It would outlive the link, and at the data port's own host it could read other links.
    if (headers["service-worker"] !== undefined)
      throw new PlatformError("access.denied", "a page behind a link to a port cannot register a service worker");
    const link = await links.find(destination.token);
    if (link === null) throw linkNotFound();
    const target = targets.peek(link.instanceId) ?? (await targets.find(link.instanceId));
    if (target.kind === "unknown" || target.row.createdAt !== link.instanceCreatedAt) throw linkNotFound();
    if (target.kind !== "ready") throw refusalOf(target, destination);
    await this.#assertOpen(target.row);
    const sandboxId = await this.#sandboxOf(link, target);
    const { token, isOwnHost } = destination;
    return { target, destination, path: `${destination.path}${query}`, link: { ...link, token, isOwnHost, sandboxId } };
  }

  async #sandboxOf(link: OpenPortLink, { row, sandboxId }: Ready): Promise<string> {
    const container = link.container ?? null;
    const task = (await this.#options.findTask?.(row, container)) ?? null;
    if (task !== null) return task.id;
    if (container === "second")
      throw new PlatformError("sandbox.lost", "the instance has no second container now, nor another sandbox for its task");
    // In a process that many instances share, a port would be open to all of them.
    if (row.slot?.isOwnSandbox !== true) throw linkNotFound();
    return sandboxId;
  }

  /** What the instance says about itself in its card: where clients reach it, and whether they need a token. */
  cardHeaders({ destination, target }: Admitted, host: string | undefined): Readonly<Record<string, string>> {
    const { publicUrl, access, idsAreKeys } = this.#options;
    const origin = publicUrl?.replace(/\/$/, "") ?? `http://${host ?? "localhost"}`;
    const needsToken = access.isOn && destination.api !== "agent" && (destination.api === "service" || !idsAreKeys);
    return { [headers.baseUrl]: `${origin}${prefixOf(destination, target)}/`, ...(needsToken && { [headers.needsToken]: "1" }) };
  }

  /** An agent's token gives access to tools only. */
  #checkRole(caller: Caller, { path }: Destination): void {
    this.#options.access.assertRole(caller, "trainer", "publisher", ...(isAgentPath(path) ? (["agent"] as const) : []));
  }
}

/** A link is that of one role, or of an instance without roles. A wrong key is as unknown as that of no instance. */
function checkRoleLink(row: InstanceRow, destination: Extract<Destination, { api: "agent" }>): void {
  const { role } = destination;
  if (role === null) {
    if (row.slot?.roles === undefined) return;
    throw new PlatformError(
      "access.denied",
      "the environment has roles; the agent of each has a link of its own, in role_urls of the instance",
    );
  }
  if (!isRoleKey(row, role)) throw refusalOf({ kind: "unknown" }, destination);
}

/** Where the client finds the routes of the instance. */
function prefixOf(destination: Destination, { instanceId }: Ready): string {
  if (destination.api === "agent") return `/agent/${encodeURIComponent(destination.agentKey)}`;
  if (destination.api === "service") return `${servicePrefix(destination.serviceId)}/replica/${tagOf(instanceId)}`;
  return instancePrefix(instanceId);
}

const REWARD_PATHS: readonly string[] = [instanceRoutes.reward.path, instanceRoutes.stepReward.path];

function replicaNotFound(serviceId: string): PlatformError {
  const message = `service '${serviceId}' has no such replica any more; read its card again`;
  return new PlatformError("session.not_found", message);
}

function sessionNotFound(serviceId: string): PlatformError {
  const message = `service '${serviceId}' has no such MCP session: it was never opened, or its replica has ended; initialize a new one`;
  return new PlatformError("session.not_found", message);
}

function admitTo(target: Ready, destination: Destination, query: string): Admitted {
  checkRoot(destination.path, target.row.slot?.program !== undefined);
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

/** Instances serve plain HTTP; WebSocket is possible only through a presigned link. */
function checkPlainHttp(headers: IncomingHttpHeaders): void {
  if (!asksForWebSocket({ headers })) return;
  throw new PlatformError("request.invalid", "WebSocket works through presigned links only; for tools use MCP's Streamable HTTP at /mcp");
}

function namesInstance(headers: IncomingHttpHeaders): boolean {
  return headers["aenvcore-mcpproxy-url"] !== undefined || headers["aenvcore-envinstance-id"] !== undefined;
}
