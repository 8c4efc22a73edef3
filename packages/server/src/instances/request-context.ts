import type { Caller } from "../access/access.ts";

/** The caller of a request about instances. The signal is aborted when the client disconnects. */
export interface RequestContext {
  readonly caller: Caller;
  readonly signal: AbortSignal;
  /** The same for every retry of one request. */
  readonly idempotencyKey?: string;
}
