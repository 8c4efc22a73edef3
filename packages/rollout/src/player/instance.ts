import type { Duplex } from "node:stream";
import type {
  ChatMessage,
  EpisodeAbilities,
  EpisodeChild,
  EpisodePrompt,
  EpisodeReply,
  EpisodeStatus,
  EpisodeTask,
  ForfeitReason,
  OracleAction,
  RecordedExchange,
  RecordingRequest,
  ResetResult,
  Reward,
  RoleRewards,
  ToolDescriptor,
} from "@aenv/contract";

interface Options {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

interface RoleOptions extends Options {
  /** Who acts, in an environment with roles. */
  readonly role?: string;
}

/** What a tool call gave: the tool's own result, and the status of the episode where the environment reports it. */
export interface InstanceToolResult {
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly structuredContent?: unknown;
  readonly isError: boolean;
  readonly status?: EpisodeStatus | undefined;
}

/** What programs that run inside need of a sandbox; the SDK's `env.sandbox` has all of it. */
export interface EpisodeSandbox {
  readonly files: {
    write(path: string, content: Uint8Array, options?: { readonly mode?: number; readonly signal?: AbortSignal }): Promise<void>;
    upload(path: string, archive: AsyncIterable<Uint8Array>, options?: { readonly signal?: AbortSignal }): Promise<void>;
  };
  exec(
    command: readonly string[],
    options?: Options & { readonly cwd?: string; readonly user?: string },
  ): Promise<{ readonly exitCode: number | null; readonly timedOut: boolean; readonly stdout: string; readonly stderr: string }>;
  spawn(
    command: readonly string[],
    options?: { readonly env?: Readonly<Record<string, string>>; readonly user?: string; readonly endsWithClient?: boolean },
  ): Promise<SandboxProgram>;
  listen(
    port: number,
    onConnection: (connection: Duplex) => void,
    options?: { readonly signal?: AbortSignal },
  ): Promise<AsyncDisposable & { readonly port: number }>;
}

interface SandboxProgram extends AsyncDisposable {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  readonly exited: Promise<{ readonly exitCode: number | null; readonly signal: string | null }>;
  signal(name: string): void;
}

/** What an episode needs of a running instance; the SDK's `Environment` has all of it. */
export interface EpisodeInstance {
  readonly episode: {
    abilities(options?: Options): Promise<EpisodeAbilities>;
    prompt(options?: RoleOptions): Promise<EpisodePrompt>;
    reply(message: ChatMessage, options?: RoleOptions): Promise<EpisodeReply>;
    hear(message: ChatMessage, options?: RoleOptions): Promise<void>;
    status(options?: Options): Promise<EpisodeStatus>;
    stepReward(options?: RoleOptions): Promise<Reward>;
    digest(options?: Options): Promise<string>;
    oracle(options?: RoleOptions): Promise<readonly OracleAction[] | null>;
    children(options?: Options): Promise<readonly EpisodeChild[]>;
    recording(options?: Options): Promise<readonly RecordedExchange[]>;
    forfeit(role: string, reason: ForfeitReason, options?: Options): Promise<boolean>;
  };
  reset(
    episode: {
      readonly task?: EpisodeTask | null;
      readonly seed?: number;
      readonly observationsOnly?: boolean;
      readonly recording?: RecordingRequest;
    },
    options?: Options,
  ): Promise<ResetResult>;
  listTools(options?: RoleOptions): Promise<ToolDescriptor[]>;
  callTool(name: string, args: Readonly<Record<string, unknown>>, options?: RoleOptions): Promise<InstanceToolResult>;
  callFunction(name: string, args?: Readonly<Record<string, unknown>>, options?: Options): Promise<unknown>;
  score(args?: Readonly<Record<string, unknown>>, options?: Options): Promise<Reward>;
  scoreRoles(args?: Readonly<Record<string, unknown>>, options?: Options): Promise<RoleRewards>;
  agentUrl(options?: Options): Promise<string>;
  /** Absent if the instance is not on a platform. */
  readonly sandbox?: EpisodeSandbox;
  /** What the platform says of the sandbox. */
  readonly runtime?: { readonly isIsolated: boolean | null } | null;
  fork(count: number, options?: Options): Promise<EpisodeInstance[]>;
  release(): Promise<void>;
}
