import type { InstanceRecord } from "@aenv/contract";
import type { ControlClientOptions, RequestOptions } from "./control-client.ts";
import type { Page } from "./page.ts";

export interface SchedulerClientOptions extends ControlClientOptions {
  /**
   * Whether the server recognises a repeated create request by its idempotency key, as an AEnv platform does. With false a
   * create request whose response was lost is not sent again: the original's services would start a second instance.
   */
  readonly dedupesCreate?: boolean;
}

export interface CreateOptions extends RequestOptions {
  /** How long an AEnv platform may hold its response until the instance runs, such as `10s`; false: not at all. It waits if this is absent. */
  readonly wait?: boolean | string;
}

export interface LookOptions extends RequestOptions {
  /** How long an AEnv platform may hold its response until the instance runs or failed. */
  readonly waitMs?: number;
}

/** Filter for instances; a field that is left out matches all. */
export interface InstanceFilter {
  /** `name` or `name@version`. */
  readonly ref?: string;
  readonly status?: string;
  readonly owner?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Whether children are listed beside their roots. */
  readonly tree?: boolean;
}

export type InstancePage = Page<InstanceRecord>;

export interface LogOptions extends RequestOptions {
  /** Number of last lines; 100 if absent. */
  readonly tail?: number;
  /** Continue with new lines until the signal aborts or the instance ends. */
  readonly follow?: boolean;
}

export interface PresignOptions extends RequestOptions {
  /** How long the link is valid; 5 if absent. A server may allow less. */
  readonly minutes?: number;
}

export interface WaitOptions extends RequestOptions {
  /** 300 s if absent. */
  readonly timeoutMs?: number;
  /** Interval between two status requests, growing from `minMs` to `maxMs`. */
  readonly interval?: { readonly minMs: number; readonly maxMs: number };
  /** False: an instance without an address counts as running too, for sandboxes without a data plane. */
  readonly needsAddress?: boolean;
}
