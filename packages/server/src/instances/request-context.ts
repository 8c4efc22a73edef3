import type { Caller } from "../access/access.ts";

/** Who asks for an instance, and whether they still wait. */
export interface RequestContext {
  readonly caller: Caller;
  readonly signal: AbortSignal;
  /** The same for the same request, however often it is sent. */
  readonly idempotencyKey?: string;
}
