import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { type ErrorCode, isPlatformError, PlatformError, parseRequestId } from "@aenv/contract";
import type { InstanceRow } from "../instances/row.ts";
import type { Target } from "../instances/targets.ts";
import type { Traced, Tracing } from "../operations/tracing.ts";
import type { Destination } from "./destination.ts";
import type { RelayEnd } from "./relay.ts";
import type { TunnelEnd } from "./tunnel.ts";

/** A call that is over, for those who keep count. */
export interface GatewayCall {
  readonly requestId: string;
  readonly instanceId: string | null;
  readonly api: Destination["api"] | null;
  /** Whose token the call came with; null if it needed none or had none that is valid. */
  readonly owner: string | null;
  /** The address of the connection's other end. */
  readonly client: string | null;
  readonly status: number;
  readonly durationMs: number;
  readonly end: RelayEnd["kind"] | TunnelEnd["kind"] | "refused";
}

/** Something that went wrong with a call and was neither the client's doing nor the platform's rule. */
export interface GatewayFault extends Pick<GatewayCall, "requestId" | "instanceId" | "api"> {
  /** `platform`: a fault of ours; `sandbox`: the sandbox is lost, or its answer is not proper HTTP. */
  readonly of: "platform" | "sandbox";
  readonly code: ErrorCode;
  readonly error: unknown;
}

export interface CallWatch {
  readonly tracing: Tracing;
  /** Who is used is not idle, */
  readonly onUse: (row: InstanceRow) => void;
  /** for as long as the call takes. */
  readonly onUsed?: (row: InstanceRow) => void;
  readonly onCall: (call: GatewayCall) => void;
  readonly onFault: (fault: GatewayFault) => void;
}

export type Ready = Extract<Target, { kind: "ready" }>;

/** A call in progress, and what is known about it so far. */
export class Call {
  destination: Destination | null = null;
  owner: string | null = null;
  #target: Ready | null = null;
  readonly #watch: CallWatch;
  readonly #traced: Traced;
  readonly #requestId: string;
  readonly #socket: Pick<Socket, "remoteAddress"> | null;
  readonly #began = performance.now();

  constructor(watch: CallWatch, headers: IncomingHttpHeaders, socket: Pick<Socket, "remoteAddress"> | null) {
    this.#watch = watch;
    this.#socket = socket;
    this.#traced = watch.tracing.start("gateway", headers);
    this.#requestId = requestIdOf(headers);
  }

  /** What the sandbox is told beside the caller's own headers. */
  get headers(): Readonly<Record<string, string>> {
    return { "x-request-id": this.#requestId, ...this.#traced.headers };
  }

  begin(target: Ready): void {
    this.#target = target;
    this.#watch.onUse(target.row);
  }

  /** Ends the call with what the client is told of an error. What it does not say goes to the log. */
  refuse(error: unknown): PlatformError {
    const failure = isPlatformError(error)
      ? error
      : new PlatformError("internal", `a fault of ours; the server's log says more under request ${this.#requestId}`, { cause: error });
    // An instance that had failed before the call is nothing new.
    if (failure.code !== "instance.failed" || failure.cause !== undefined) this.#report(failure.code, failure.cause ?? failure);
    this.#end(failure.status, "refused");
    return failure;
  }

  /** An answer that was cut off after it had begun comes with the reason. */
  end(status: number, end: GatewayCall["end"], error?: Error): void {
    if (end === "lost") this.#report("sandbox.lost", error);
    this.#end(status, end);
  }

  #report(code: ErrorCode, error: unknown): void {
    const of = faultOf(code);
    if (of !== null) this.#watch.onFault({ ...this.#who, of, code, error });
  }

  get #who(): Pick<GatewayCall, "requestId" | "instanceId" | "api"> {
    return { requestId: this.#requestId, instanceId: this.#target?.instanceId ?? null, api: this.destination?.api ?? null };
  }

  #end(status: number, end: GatewayCall["end"]): void {
    const api = this.destination?.api ?? null;
    if (this.#target !== null) this.#watch.onUsed?.(this.#target.row);
    this.#traced.end({ "http.response.status_code": status, "aenv.api": api ?? "none" }, status >= 500);
    const durationMs = performance.now() - this.#began;
    const client = this.#socket?.remoteAddress ?? null;
    this.#watch.onCall({ ...this.#who, owner: this.owner, client, status, durationMs, end });
  }
}

/** Whose fault an error is, if it is one that operators should know of. A port on which nothing listens yet is none. */
function faultOf(code: ErrorCode): GatewayFault["of"] | null {
  if (code === "sandbox.lost" || code === "instance.failed") return "sandbox";
  return code === "internal" || code.startsWith("store.") ? "platform" : null;
}

function requestIdOf(headers: IncomingHttpHeaders): string {
  return parseRequestId(headers["x-request-id"]) ?? `${ours}-${(++calls).toString(36)}`;
}

/** Of one server's calls none has another's id, and no two servers' have. */
const ours = randomUUID();
let calls = 0;
