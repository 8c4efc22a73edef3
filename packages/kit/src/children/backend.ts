import type { ChildGrant, EpisodeTask, OpenedChild } from "@aenv/contract";

/** A child that is opened for an episode. */
export interface ChildSpec {
  readonly name: string;
  readonly episode: string;
  readonly seed: number;
  readonly task: EpisodeTask | null;
  /** Undefined for a new episode. */
  readonly snapshot: unknown;
}

/** A request to the agent API or the trainer API of a child. */
export interface ChildRequest {
  readonly child: string;
  readonly method: "GET" | "POST";
  /** Below the instance, such as `/task/reward`. */
  readonly path: string;
  readonly body?: unknown;
}

export interface ChildAnswer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

/** What runs the children of the instances of a process: the platform, or the process itself. */
export interface ChildHost {
  /** What each instance has, if nothing else says so: the platform does. */
  readonly ownGrants?: ChildGrants;
  /** Resolves when the child runs. */
  open(instanceId: string, spec: ChildSpec, signal: AbortSignal | undefined): Promise<OpenedChild>;
  request(instanceId: string, request: ChildRequest, signal: AbortSignal | undefined): Promise<ChildAnswer>;
  close(instanceId: string, child: string): Promise<void>;
}

export type ChildGrants = readonly ChildGrant[];
