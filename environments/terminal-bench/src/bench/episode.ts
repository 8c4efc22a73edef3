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

export interface PlayedTrajectory {
  readonly id: string;
  readonly messages: readonly PlayedMessage[];
  readonly steps: readonly PlayedStep[];
  readonly turns: readonly PlayedTurn[];
  readonly usage: { readonly prompt_tokens: number | null; readonly completion_tokens: number | null; readonly cached_tokens: number };
  readonly cost: number | null;
  readonly timing: { readonly started_at: string; readonly total_ms: number };
}

export interface PlayedMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?:
    | readonly { readonly id: string; readonly function: { readonly name: string; readonly arguments: string } }[]
    | undefined;
  readonly tool_call_id?: string | undefined;
}

export interface PlayedStep {
  readonly message: number | null;
  readonly call: { readonly id: string; readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
  readonly result: { readonly content: readonly { readonly type: string }[] };
}

export interface PlayedTurn {
  readonly message: number | null;
  readonly prompt_tokens: number | null;
  readonly completion_tokens: number | null;
  readonly cached_tokens?: number | null | undefined;
}
