import type { AtifSource } from "@aenv/benchmark";

/** What result files need of an episode that has ended: a part of what the platform records. */
export interface FinishedEpisode {
  readonly taskId: string | null;
  readonly sample: number;
  readonly outcome: Outcome;
  readonly artifacts: ReadonlyMap<string, Uint8Array>;
  readonly trajectory: PlayedTrajectory;
}

export type Outcome =
  | { readonly kind: "scored"; readonly reward: number }
  | { readonly kind: "unscored"; readonly cause: string; readonly stage: string; readonly message: string };

export interface PlayedTrajectory extends AtifSource {
  readonly id: string;
  readonly usage: AtifSource["usage"] & { readonly cached_tokens: number };
  readonly timing: { readonly started_at: string; readonly total_ms: number };
}
