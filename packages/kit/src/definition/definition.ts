import type { JsonSchema, Task } from "@aenv/contract";
import { rememberLocation } from "./source-location.ts";
import type { StandardSchemaV1 } from "./standard-schema.ts";

type MaybePromise<T> = T | Promise<T>;

/** zod, any other Standard Schema, or a plain JSON Schema object. */
export type Schema = StandardSchemaV1 | JsonSchema;

/** What a schema gives to the code behind it; a JSON Schema promises no more than an object. */
export type Parsed<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S> : Record<string, unknown>;

/** What an episode begins with. */
export interface EpisodeContext {
  readonly instanceId: string;
  readonly task: Task | null;
  readonly seed: number;
  readonly variables: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";
export type Log = (level: LogLevel, data: unknown) => void;

export interface SetupContext extends EpisodeContext {
  /** Fires when the client goes away, the time is up, or the instance is ended before its setup is done. */
  readonly signal: AbortSignal;
}

export interface CallContext<State> extends EpisodeContext {
  readonly state: State;
  /** Fires when the client cancels, the time is up, or the server shuts down. */
  readonly signal: AbortSignal;
  /** Sends a log message to the agent's client. */
  readonly log: Log;
  /** Tells the agent's client how far the call is; ignored if the client did not ask. */
  readonly progress: (done: number, total?: number, message?: string) => void;
}

export interface TasksContext {
  readonly variables: Readonly<Record<string, string>>;
}

export interface ToolContext<State> extends CallContext<State> {
  /** The arguments as JSON, written as the client wrote them: there `2.0` is not `2`, and an integer of any size is whole. */
  readonly inputText: () => string;
}

export interface ToolDefinition<State = unknown, Input = unknown> {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly input?: Input & Schema;
  /** With an output schema the result also travels as `structuredContent`, checked against it. */
  readonly output?: Schema;
  /** A hidden tool is neither listed nor callable. */
  readonly hidden?: boolean;
  /** Hints for clients, as in MCP: `readOnlyHint`, `destructiveHint`, … */
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly timeoutMs?: number;
  run(input: Parsed<Input>, context: ToolContext<State>): unknown;
}

export interface FunctionDefinition<State = unknown, Input = unknown> {
  readonly name: string;
  readonly description?: string;
  readonly input?: Input & Schema;
  /** Where it is served; `/functions/<name>` if not given. */
  readonly endpoint?: string;
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly timeoutMs?: number;
  run(input: Parsed<Input>, context: CallContext<State>): unknown;
}

export interface RewardDefinition<State = unknown, Input = unknown> {
  readonly name: string;
  readonly description?: string;
  readonly input?: Input & Schema;
  /** Its share in the total; 1 if not given. */
  readonly weight?: number;
  /** An address of its own, beside its part in `/task/reward`. */
  readonly endpoint?: string;
  readonly method?: "GET" | "POST";
  readonly timeoutMs?: number;
  score(context: CallContext<State> & { readonly input: Parsed<Input> }): unknown;
}

export type HealthCheck<State = unknown> = (context: EpisodeContext & { readonly state: State }) => MaybePromise<HealthReport>;

/** How a health check is listed, and where it answers beside `/health`. */
export interface HealthEndpoint {
  readonly name?: string;
  readonly description?: string;
  readonly endpoint?: string;
  readonly method?: "GET" | "POST";
}

/** An episode that has just begun, as `observe` sees it. */
export interface ObserveContext<State> extends SetupContext {
  readonly state: State;
}

export interface HealthReport {
  /** `healthy` and `success` mean that calls may come; anything else means not. */
  readonly status: string;
  readonly [key: string]: unknown;
}

/**
 * An environment: what it can do, and how an episode's state begins. The state itself is a value.
 * Written as methods, so that an environment with any state passes where the state does not matter, as in `serve`.
 */
export interface EnvironmentDefinition<State = unknown> {
  /** Called for each new episode; what it returns is that episode's state. */
  setup?(context: SetupContext): MaybePromise<State>;
  /** How long `setup`, `restore` and `observe` may each take; five minutes if not given, `Infinity` for no limit. */
  readonly setupTimeoutMs?: number;
  /** What the agent sees first in a new episode; `reset` answers it. The task's `instruction` if not given. */
  observe?(context: ObserveContext<State>): unknown;
  tasks?(): MaybePromise<readonly Task[]>;
  /**
   * The tasks of an instance with these variables, where not every instance has the same; `tasks` is then what is shown of
   * the environment as a whole. A list is checked once: return the same array for the same tasks.
   */
  tasksOf?(context: TasksContext): MaybePromise<readonly Task[]>;
  readonly tools?: readonly ToolDefinition<State>[];
  /**
   * The tools of one episode, where not every episode has the same; `tools` is then what is shown of the environment
   * as a whole. Asked when an episode begins. A list is made ready once: return the same array for the same tools.
   */
  toolsOf?(state: State): readonly ToolDefinition<State>[];
  readonly rewards?: readonly RewardDefinition<State>[];
  readonly functions?: readonly FunctionDefinition<State>[];
  health?(...context: Parameters<HealthCheck<State>>): ReturnType<HealthCheck<State>>;
  readonly healthAt?: HealthEndpoint;
  /** The state as JSON, for states that are more than plain data. */
  snapshot?(state: State): unknown;
  /** The way back from `snapshot`. */
  restore?(snapshot: unknown, context: SetupContext): MaybePromise<State>;
  /** Called when an episode ends: close what `setup` opened. */
  teardown?(state: State): MaybePromise<void>;
}

/** The same as authors write it: each `run` sees its own `input`, and all see what `setup` returns. */
export interface EnvironmentSource<
  State,
  Inputs extends readonly unknown[],
  RewardInputs extends readonly unknown[],
  FunctionInputs extends readonly unknown[],
> {
  readonly setup?: (context: SetupContext) => MaybePromise<State>;
  readonly setupTimeoutMs?: number;
  readonly observe?: (context: ObserveContext<NoInfer<State>>) => unknown;
  readonly tasks?: () => MaybePromise<readonly Task[]>;
  readonly tasksOf?: (context: TasksContext) => MaybePromise<readonly Task[]>;
  readonly tools?: { readonly [K in keyof Inputs]: ToolDefinition<NoInfer<State>, Inputs[K]> };
  readonly toolsOf?: (state: NoInfer<State>) => readonly ToolDefinition<NoInfer<State>>[];
  readonly rewards?: { readonly [K in keyof RewardInputs]: RewardDefinition<NoInfer<State>, RewardInputs[K]> };
  readonly functions?: { readonly [K in keyof FunctionInputs]: FunctionDefinition<NoInfer<State>, FunctionInputs[K]> };
  readonly health?: HealthCheck<NoInfer<State>>;
  readonly healthAt?: HealthEndpoint;
  readonly snapshot?: (state: NoInfer<State>) => unknown;
  readonly restore?: (snapshot: unknown, context: SetupContext) => MaybePromise<NoInfer<State>>;
  readonly teardown?: (state: NoInfer<State>) => MaybePromise<void>;
}

/**
 * Defines an environment with explicit state: it can be reset, copied, forked and packed.
 *
 * @example
 * export default defineEnvironment({
 *   setup: () => ({ total: 0 }),
 *   tools: [{ name: "add", input: z.object({ n: z.number() }), run: ({ n }, { state }) => (state.total += n) }],
 *   rewards: [{ name: "reached", score: ({ state }) => (state.total === 3 ? 1 : 0) }],
 * });
 */
export function defineEnvironment<
  State,
  const Inputs extends readonly unknown[],
  const RewardInputs extends readonly unknown[],
  const FunctionInputs extends readonly unknown[],
>(source: EnvironmentSource<State, Inputs, RewardInputs, FunctionInputs>): EnvironmentDefinition<State> {
  return rememberLocation(source as unknown as EnvironmentDefinition<State>, defineEnvironment);
}

// The state of a tool that stands in a file of its own is whatever its author says it is:
// `tool({ …, run: (input, { state }: CallContext<Shop>) => … })`.
// biome-ignore-start lint/suspicious/noExplicitAny: unannotated state cannot be known here

/** A tool by itself, to be listed in `tools` elsewhere. */
export function tool<Input, State = any>(definition: ToolDefinition<State, Input>): ToolDefinition<State, Input> {
  return rememberLocation(definition, tool);
}

/** A reward by itself, to be listed in `rewards` elsewhere. */
export function reward<Input, State = any>(definition: RewardDefinition<State, Input>): RewardDefinition<State, Input> {
  return rememberLocation(definition, reward);
}

/** A function by itself, to be listed in `functions` elsewhere. */
export function fn<Input, State = any>(definition: FunctionDefinition<State, Input>): FunctionDefinition<State, Input> {
  return rememberLocation(definition, fn);
}
// biome-ignore-end lint/suspicious/noExplicitAny: see above
