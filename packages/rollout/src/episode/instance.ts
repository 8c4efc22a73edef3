import type {
  ChatMessage,
  EpisodeAbilities,
  EpisodePrompt,
  EpisodeReply,
  EpisodeStatus,
  EpisodeTask,
  OracleAction,
  ResetResult,
  Reward,
  ToolDescriptor,
} from "@aenv/contract";

interface Options {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** What a tool call gave: the tool's own result, and the status of the episode where the environment reports it. */
export interface InstanceToolResult {
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly structuredContent?: unknown;
  readonly isError: boolean;
  readonly status?: EpisodeStatus | undefined;
}

/** What an episode needs of a running instance; the SDK's `Environment` has all of it. */
export interface EpisodeInstance {
  readonly episode: {
    abilities(options?: Options): Promise<EpisodeAbilities>;
    prompt(options?: Options): Promise<EpisodePrompt>;
    reply(message: ChatMessage, options?: Options): Promise<EpisodeReply>;
    hear(message: ChatMessage, options?: Options): Promise<void>;
    stepReward(options?: Options): Promise<Reward>;
    digest(options?: Options): Promise<string>;
    oracle(options?: Options): Promise<readonly OracleAction[] | null>;
  };
  reset(
    episode: { readonly task?: EpisodeTask | null; readonly seed?: number; readonly observationsOnly?: boolean },
    options?: Options,
  ): Promise<ResetResult>;
  listTools(options?: Options): Promise<ToolDescriptor[]>;
  callTool(name: string, args: Readonly<Record<string, unknown>>, options?: Options): Promise<InstanceToolResult>;
  callFunction(name: string, args?: Readonly<Record<string, unknown>>, options?: Options): Promise<unknown>;
  score(args?: Readonly<Record<string, unknown>>, options?: Options): Promise<Reward>;
  agentUrl(options?: Options): Promise<string>;
  fork(count: number, options?: Options): Promise<EpisodeInstance[]>;
  release(): Promise<void>;
}
