import type {
  ContentBlock,
  EpisodePrompt,
  EpisodeReply,
  EpisodeStatus,
  EpisodeTask,
  Json,
  ResetResult,
  Reward,
  ToolDescriptor,
} from "@aenv/contract";

/** The result of a tool of a child. A tool that fails is a result with `isError`, as for an agent. */
export interface ChildToolResult {
  /** Its text blocks, joined by line breaks. */
  readonly text: string;
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: unknown;
  readonly isError: boolean;
}

/**
 * An instance of another environment that belongs to the episode. It has the agent API and the trainer API for the code of its parent, and
 * knows nothing of it. One that is lost fails with `sandbox.lost` and its name.
 */
export interface Child {
  /** Its name in `deployConfig.uses`. */
  readonly name: string;
  tools(): Promise<readonly ToolDescriptor[]>;
  callTool(name: string, args?: Readonly<Record<string, unknown>>): Promise<ChildToolResult>;
  callFunction(name: string, args?: Readonly<Record<string, unknown>>): Promise<Json>;
  /** A reward that cannot be computed is an error, never a zero. */
  reward(args?: Readonly<Record<string, unknown>>): Promise<Reward>;
  /** Begins an episode of the child within that of its parent. What is left out stays. */
  reset(episode?: { readonly task?: EpisodeTask | null; readonly seed?: number }): Promise<ResetResult>;
  prompt(): Promise<EpisodePrompt>;
  reply(text: string): Promise<EpisodeReply>;
  status(): Promise<EpisodeStatus>;
  /** Ends it before its episode ends. A child that is used again afterwards is a new one. */
  close(): Promise<void>;
}

/** The instances of `deployConfig.uses`. They begin and end with the episode, and are part of its snapshots and forks. */
export interface Children {
  /** False without a declaration, and without a platform or other host that runs them. */
  readonly isAvailable: boolean;
  /** Throws if `deployConfig.uses` has no such name. One that is opened on demand is opened by its first call. */
  get(name: string): Child;
  list(): readonly Child[];
}
