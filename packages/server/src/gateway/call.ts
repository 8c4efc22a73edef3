import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { InstanceRow } from "../instances/row.ts";
import type { Target } from "../instances/targets.ts";
import type { Traced, Tracing } from "../operations/tracing.ts";
import type { Addressee } from "./address.ts";
import type { RelayEnd } from "./relay.ts";

/** A call that is over, for those who keep count. */
export interface GatewayCall {
  readonly requestId: string;
  readonly instanceId: string | null;
  readonly door: Addressee["door"] | null;
  readonly status: number;
  readonly durationMs: number;
  readonly end: RelayEnd["kind"] | "refused";
}

export interface CallWatch {
  readonly tracing: Tracing;
  /** Who is used is not idle, */
  readonly onUse: (row: InstanceRow) => void;
  /** for as long as the call takes. */
  readonly onUsed?: (row: InstanceRow) => void;
  readonly onCall: (call: GatewayCall) => void;
}

export type Ready = Extract<Target, { kind: "ready" }>;

/** A call on its way, and what is known of it so far. */
export class Call {
  addressee: Addressee | null = null;
  #target: Ready | null = null;
  readonly #watch: CallWatch;
  readonly #traced: Traced;
  readonly #requestId: string;
  readonly #began = performance.now();

  constructor(watch: CallWatch, headers: IncomingHttpHeaders) {
    this.#watch = watch;
    this.#traced = watch.tracing.start("gateway", headers);
    this.#requestId = requestIdOf(headers);
  }

  /** What the box is told beside the caller's own headers. */
  get headers(): Readonly<Record<string, string>> {
    return { "x-request-id": this.#requestId, ...this.#traced.headers };
  }

  begin(target: Ready): void {
    this.#target = target;
    this.#watch.onUse(target.row);
  }

  end(status: number, end: GatewayCall["end"]): void {
    const door = this.addressee?.door ?? null;
    if (this.#target !== null) this.#watch.onUsed?.(this.#target.row);
    this.#traced.end({ "http.response.status_code": status, "aenv.door": door ?? "none" }, status >= 500);
    const durationMs = performance.now() - this.#began;
    this.#watch.onCall({ requestId: this.#requestId, instanceId: this.#target?.instanceId ?? null, door, status, durationMs, end });
  }
}

function requestIdOf(headers: IncomingHttpHeaders): string {
  const given = headers["x-request-id"];
  return typeof given === "string" && /^[\w.-]{1,64}$/.test(given) ? given : `${ours}-${(++calls).toString(36)}`;
}

/** Of one server's calls none has another's id, and no two servers' have. */
const ours = randomUUID();
let calls = 0;
