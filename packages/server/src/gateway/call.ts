import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { type ErrorCode, isPlatformError, PlatformError, parseRequestId } from "@aenv/contract";
import type { InstanceRow } from "../instances/row.ts";
import type { Target } from "../instances/targets.ts";
import type { Traced, Tracing } from "../operations/tracing.ts";
import type { Destination } from "./destination.ts";
import type { RelayEnd } from "./relay.ts";
import type { TunnelEnd } from "./tunnel.ts";

/** A call that has ended, for metrics, logs and the audit log. */
export interface GatewayCall {
  readonly requestId: string;
  readonly instanceId: string | null;
  readonly api: Destination["api"] | "openenv" | null;
  /** The owner of the call's token; null if the call needed no token or had no valid one. */
  readonly owner: string | null;
  /** The client's network address. */
  readonly client: string | null;
  readonly status: number;
  readonly durationMs: number;
  readonly end: RelayEnd["kind"] | TunnelEnd["kind"] | "refused";
}

/** A failure of a call that was caused neither by the client nor by a rule of the platform. */
export interface GatewayFault extends Pick<GatewayCall, "requestId" | "instanceId" | "api"> {
  /** `platform`: a bug or a store failure; `sandbox`: the sandbox is lost, or its response is not valid HTTP. */
  readonly of: "platform" | "sandbox";
  readonly code: ErrorCode;
  readonly error: unknown;
}

export interface CallWatch {
  readonly tracing: Tracing;
  /** Called when a call begins: its instance is not idle until `onUsed`. */
  readonly onUse: (row: InstanceRow) => void;
  readonly onUsed?: (row: InstanceRow) => void;
  readonly onCall: (call: GatewayCall) => void;
  readonly onFault: (fault: GatewayFault) => void;
}

export type Ready = Extract<Target, { kind: "ready" }>;

/** The connection of a client, or what another process knows about it. */
export interface Client {
  readonly remoteAddress?: string | undefined;
}

/** A call in progress, and what is known about it so far. */
export class Call {
  destination: Destination | { readonly api: "openenv" } | null = null;
  owner: string | null = null;
  /** Called once when the call has ended, in whatever way. */
  onEnd: (() => void) | null = null;
  #target: Ready | null = null;
  readonly #watch: CallWatch;
  readonly #traced: Traced;
  readonly #requestId: string;
  readonly #client: Client | null;
  readonly #began = performance.now();

  constructor(watch: CallWatch, headers: IncomingHttpHeaders, client: Client | null) {
    this.#watch = watch;
    this.#client = client;
    this.#traced = watch.tracing.start("gateway", headers);
    this.#requestId = requestIdOf(headers);
  }

  /** Headers that the gateway adds to the request. */
  get headers(): Readonly<Record<string, string>> {
    return { "x-request-id": this.#requestId, ...this.#traced.headers };
  }

  begin(target: Ready): void {
    this.#target = target;
    this.#watch.onUse(target.row);
  }

  /** Ends the call with an error. Returns what the client gets; details that it must not see go to the log only. */
  refuse(error: unknown): PlatformError {
    const failure = isPlatformError(error)
      ? error
      : new PlatformError("internal", `an internal error; the server's log has the details under request ${this.#requestId}`, {
          cause: error,
        });
    // An instance that had failed before the call was reported then.
    if (failure.code !== "instance.failed" || failure.cause !== undefined) this.#report(failure.code, failure.cause ?? failure);
    this.#end(failure.status, "refused");
    return failure;
  }

  /** `error` is the reason why a response was cut off after it had begun. */
  end(status: number, end: GatewayCall["end"], error?: Error): void {
    if (end === "lost") this.#report("sandbox.lost", error);
    this.#end(status, end);
  }

  #report(code: ErrorCode, error: unknown): void {
    const of = faultOf(code);
    if (of === null) return;
    const instanceId = this.#target?.instanceId ?? null;
    this.#watch.onFault({ requestId: this.#requestId, instanceId, api: this.destination?.api ?? null, of, code, error });
  }

  #end(status: number, end: GatewayCall["end"]): void {
    const api = this.destination?.api ?? null;
    this.onEnd?.();
    if (this.#target !== null) this.#watch.onUsed?.(this.#target.row);
    this.#traced.end({ "http.response.status_code": status, "aenv.api": api ?? "none" }, status >= 500);
    const durationMs = performance.now() - this.#began;
    const client = this.#client?.remoteAddress ?? null;
    const instanceId = this.#target?.instanceId ?? null;
    this.#watch.onCall({ requestId: this.#requestId, instanceId, api, owner: this.owner, client, status, durationMs, end });
  }
}

/** The cause of an error that operators should see; null for others, such as a port on which nothing listens yet. */
function faultOf(code: ErrorCode): GatewayFault["of"] | null {
  if (code === "sandbox.lost" || code === "instance.failed") return "sandbox";
  return code === "internal" || code.startsWith("store.") ? "platform" : null;
}

function requestIdOf(headers: IncomingHttpHeaders): string {
  return parseRequestId(headers["x-request-id"]) ?? `${serverId}-${(++calls).toString(36)}`;
}

/** Makes request ids unique across servers. */
const serverId = randomUUID();
let calls = 0;
