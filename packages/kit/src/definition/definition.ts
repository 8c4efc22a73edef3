import type { ChatMessage, ForfeitReason, JsonObject, JsonSchema, OracleAction, Task } from "@aenv/contract";
import type { AgentPart, AgentSkill } from "./agent.ts";
import type { CallContext, EpisodeContext, SetupContext } from "./context.ts";
import { rememberLocation } from "./source-location.ts";
import type { StandardSchemaV1 } from "./standard-schema.ts";

export type { CallContext, EpisodeContext, Log, LogLevel, SetupContext } from "./context.ts";

type MaybePromise<T> = T | Promise<T>;

/** zod, any other Standard Schema, or a plain JSON Schema object. */
export type Schema = StandardSchemaV1 | JsonSchema;

/** The type of a value that a schema has accepted; for a JSON Schema, an object. */
export type Parsed<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S> : Record<string, unknown>;

export interface TasksContext {
  readonly variables: Readonly<Record<string, string>>;
}

export interface ToolContext<State> extends CallContext<State> {
  /** The arguments as the JSON text that the client sent: `2.0` is not `2`, and large integers keep all digits. */
  readonly inputText: () => string;
}

export interface ToolDefinition<State = unknown, Input = unknown> {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly input?: Input & Schema;
  /** With an output schema, the result is checked against it and also sent as `structuredContent`. */
  readonly output?: Schema;
  /** A hidden tool is neither listed nor callable. */
  readonly hidden?: boolean;
  /** Hints for clients, as in MCP: `readOnlyHint`, `destructiveHint`, … */
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly timeoutMs?: number;
  /** With roles: may also be called when it is not the role's turn, for tools that only read. */
  readonly outOfTurn?: boolean;
  /** With roles and `resolve`, it checks the action and returns it, as plain data; `resolve` then changes the state. */
  run(input: Parsed<Input>, context: ToolContext<State>): unknown;
}

export interface FunctionDefinition<State = unknown, Input = unknown> {
  readonly name: string;
  readonly description?: string;
  readonly input?: Input & Schema;
  /** The path at which it is served; `/functions/<name>` by default. */
  readonly endpoint?: string;
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly timeoutMs?: number;
  run(input: Parsed<Input>, context: CallContext<State>): unknown;
}

export interface RewardDefinition<State = unknown, Input = unknown> {
  readonly name: string;
  readonly description?: string;
  readonly input?: Input & Schema;
  /** Its weight in the total; 1 by default. */
  readonly weight?: number;
  /** A path of its own, in addition to its part in `/task/reward`. */
  readonly endpoint?: string;
  readonly method?: "GET" | "POST";
  readonly timeoutMs?: number;
  /**
   * `fresh`: `sandbox` is a new one from the image of the task's sandbox, which the agent never touched, and is closed afterwards.
   * That of the agent is `sandboxes.get("task")`.
   */
  readonly sandbox?: "fresh";
  /** Has the episode's path recorded, and gives it to `score` as `path`. A snapshot and a fork keep it. */
  readonly path?: true;
  /**
   * With roles: the role that it is for. Null: the reward of the whole episode, and of each role that has none of its own. Each role has
   * one, if not given.
   */
  readonly role?: string | null;
  score(context: RewardContext<State, Input>): unknown;
}

/** What `score` gets. */
export interface RewardContext<State = unknown, Input = unknown> extends CallContext<State> {
  readonly input: Parsed<Input>;
  /** What the agent has done, in order. Only for rewards with `path: true`. */
  readonly path: readonly PathStep[];
}

export type HealthCheck<State = unknown> = (context: EpisodeContext & { readonly state: State }) => MaybePromise<HealthReport>;

/** How a health check is listed, and at which path it answers in addition to `/health`. */
export interface HealthEndpoint {
  readonly name?: string;
  readonly description?: string;
  readonly endpoint?: string;
  readonly method?: "GET" | "POST";
}

/** One step of what the agent has done in an episode: a call of a tool, or words. */
export type PathStep = PathCall | PathWords;

/** A call that reached its tool; one whose arguments the tool's schema refuses does not. */
export interface PathCall {
  readonly tool: string;
  /** As the agent sent them: defaults are not filled in. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Whether the agent got an error. True as long as the call runs. */
  readonly isError: boolean;
  /** Whose agent called; absent without roles. */
  readonly role?: string;
}

/** What the agent said without calling a tool. */
export interface PathWords {
  readonly say: string;
  /** Whose agent said it; absent without roles. */
  readonly role?: string;
}

/** One of the roles in which several agents act on an instance. */
export interface RoleDefinition {
  readonly description?: string;
  /** How long a turn of it may take. The first one begins with the first call of any role. */
  readonly turnTimeoutMs?: number;
  /** So many of its calls in its turns may fail. */
  readonly maxInvalidMoves?: number;
}

/** A new episode, as `observe` gets it; with roles also a later state, as one of them sees it. */
export interface ObserveContext<State> extends SetupContext {
  readonly state: State;
  readonly role: string | null;
}

/** What the other side says to an agent that speaks: its messages, if any, and whether the episode is over. */
export interface Reply {
  /** One message of the user, or messages of any role. */
  readonly content?: string;
  readonly messages?: readonly ChatMessage[];
  readonly done?: boolean;
  readonly reason?: string;
}

/** Whether an episode is over, with or without a reason. */
export type Status = boolean | { readonly done: boolean; readonly reason?: string };

/** The state of an episode between two calls. */
export interface StateContext<State> extends EpisodeContext {
  readonly state: State;
  /** The role that the answer is for; null without roles, and where the answer is for all. */
  readonly role: string | null;
}

export interface HealthReport {
  /** `healthy` and `success` mean that the environment accepts calls; any other value means that it does not. */
  readonly status: string;
  readonly [key: string]: unknown;
}

/** What the agent API offers over MCP beside tools: resources, prompts and completions. */
export interface McpSurface {
  /** As a server of MCP declares them: `{ resources: {}, prompts: {} }`. */
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** Answers a method of these capabilities, such as `resources/read`. */
  request(method: string, params: object, signal: AbortSignal): Promise<object>;
}

/**
 * An environment: its tools, rewards and functions, and how the state of an episode is created. The state is a value.
 * Declared as methods, so that an environment with any state type is accepted where the state does not matter, as in `serve`.
 */
export interface EnvironmentDefinition<State = unknown> {
  /** What the environment is, for the callers of its agent. */
  readonly description?: string;
  /** What its agent can do. */
  readonly skills?: readonly AgentSkill[];
  /** An agent that answers messages: the environment is an agent. */
  readonly agent?: AgentPart;
  /** Called for each new episode; returns its state. */
  setup?(context: SetupContext): MaybePromise<State>;
  /** Timeout for each of `setup`, `restore` and `observe`; five minutes by default, `Infinity` for no limit. */
  readonly setupTimeoutMs?: number;
  /** The first observation of a new episode, which `reset` returns. The task's `instruction` by default. */
  observe?(context: ObserveContext<State>): unknown;
  /** The messages that an agent begins with; a text is the user's message. What `observe` returns, if not given. */
  prompt?(context: StateContext<State>): MaybePromise<string | readonly ChatMessage[]>;
  /**
   * Called when the agent speaks without calling a tool: a simulated user answers, a game goes on. If not given, the agent's words end
   * the episode.
   */
  reply?(text: string, context: CallContext<State> & { readonly message: ChatMessage }): MaybePromise<Reply>;
  /** Called with what the agent writes beside tool calls, before the calls run. Such words are lost, if it is not given. */
  hear?(text: string, context: CallContext<State> & { readonly message: ChatMessage }): MaybePromise<void>;
  /** Whether the episode is over. Called after every tool call; the answer is sent with the tool's result. */
  status?(context: StateContext<State>): MaybePromise<Status>;
  /** The reward of the last step, for trainers that want one after every step. */
  stepReward?(context: StateContext<State>): MaybePromise<number>;
  /** What stands for the state when two states are compared; its snapshot, if not given. Leave out what may differ between equal episodes. */
  digest?(state: State): unknown;
  /**
   * The actions that solve the episode's task; null if they are not known. Only trainers see them. With roles: what the role should do
   * next, which is asked for again when it has done that.
   */
  oracle?(context: StateContext<State>): MaybePromise<readonly OracleAction[] | null>;
  /**
   * What an agent sees of a tool's result in an episode that was begun with `observations_only`, as rollouts do. For tools that also
   * return rewards or other things that are not for the agent. All of the result, if not given.
   */
  observation?(result: unknown, context: StateContext<State>): unknown;
  tasks?(): MaybePromise<readonly Task[]>;
  /**
   * The tasks of an instance with these variables, if instances differ in their tasks; `tasks` then describes the environment as
   * a whole. A list is checked once: return the same array for the same tasks.
   */
  tasksOf?(context: TasksContext): MaybePromise<readonly Task[]>;
  /**
   * Makes a task of an object that a trainer gives instead of a listed task's id; throws if it cannot be played. If not given, only
   * listed tasks are played.
   */
  inlineTask?(given: JsonObject, context: TasksContext): MaybePromise<Task>;
  /**
   * The roles in which several agents act on one instance, by name. Each gets a link, tools, a view and a reward of its own. Without roles,
   * an instance has one agent.
   */
  readonly roles?: Readonly<Record<string, RoleDefinition>>;
  /** The roles that may act now: none if the episode is over, several to act at once. All of them always, if not given. */
  turnOf?(context: StateContext<State>): readonly string[];
  /**
   * Called when all roles whose turn it is have acted, with the action of each; changes the state. With it, tools change nothing: an
   * action waits for those of the others.
   */
  resolve?(actions: Readonly<Record<string, unknown>>, state: State, context: StateContext<State>): MaybePromise<void>;
  /**
   * Changes the state as it is after a role has given up: its agent exceeded its time or its invalid moves, or has left. If not given, that
   * role is unscored.
   */
  forfeit?(state: State, role: string, reason: ForfeitReason): MaybePromise<void>;
  /** Whether other roles are scored when one has given up and there is no `forfeit`; false by default. */
  readonly scoresOthers?: boolean;
  readonly tools?: readonly ToolDefinition<State>[];
  /**
   * The tools of one episode, or of a role in it, if they differ; `tools` then describes the environment as a whole. Called when an
   * episode begins. A list is compiled once: return the same array for the same tools.
   */
  toolsOf?(state: State, role: string | null): readonly ToolDefinition<State>[];
  /** Resources and prompts of MCP, for an environment that has some. */
  mcp?(state: State): McpSurface;
  readonly rewards?: readonly RewardDefinition<State>[];
  readonly functions?: readonly FunctionDefinition<State>[];
  health?(...context: Parameters<HealthCheck<State>>): ReturnType<HealthCheck<State>>;
  readonly healthAt?: HealthEndpoint;
  /** Converts the state to JSON; needed if it is more than plain data. */
  snapshot?(state: State): unknown;
  /** Converts the JSON of `snapshot` back to a state. */
  restore?(snapshot: unknown, context: SetupContext): MaybePromise<State>;
  /** Called when an episode ends: close what `setup` opened. */
  teardown?(state: State): MaybePromise<void>;
}

/** An `EnvironmentDefinition` as authors write it: each `run` is typed by its own `input` and by what `setup` returns. */
export interface EnvironmentSource<
  State,
  Inputs extends readonly unknown[],
  RewardInputs extends readonly unknown[],
  FunctionInputs extends readonly unknown[],
> {
  readonly description?: string;
  readonly skills?: readonly AgentSkill[];
  readonly agent?: AgentPart;
  readonly setup?: (context: SetupContext) => MaybePromise<State>;
  readonly setupTimeoutMs?: number;
  readonly observe?: (context: ObserveContext<NoInfer<State>>) => unknown;
  readonly prompt?: (context: StateContext<NoInfer<State>>) => MaybePromise<string | readonly ChatMessage[]>;
  readonly reply?: (text: string, context: CallContext<NoInfer<State>> & { readonly message: ChatMessage }) => MaybePromise<Reply>;
  readonly hear?: (text: string, context: CallContext<NoInfer<State>> & { readonly message: ChatMessage }) => MaybePromise<void>;
  readonly status?: (context: StateContext<NoInfer<State>>) => MaybePromise<Status>;
  readonly stepReward?: (context: StateContext<NoInfer<State>>) => MaybePromise<number>;
  readonly digest?: (state: NoInfer<State>) => unknown;
  readonly oracle?: (context: StateContext<NoInfer<State>>) => MaybePromise<readonly OracleAction[] | null>;
  readonly observation?: (result: unknown, context: StateContext<NoInfer<State>>) => unknown;
  readonly tasks?: () => MaybePromise<readonly Task[]>;
  readonly tasksOf?: (context: TasksContext) => MaybePromise<readonly Task[]>;
  readonly inlineTask?: (given: JsonObject, context: TasksContext) => MaybePromise<Task>;
  readonly roles?: Readonly<Record<string, RoleDefinition>>;
  readonly turnOf?: (context: StateContext<NoInfer<State>>) => readonly string[];
  readonly resolve?: (
    actions: Readonly<Record<string, unknown>>,
    state: NoInfer<State>,
    context: StateContext<NoInfer<State>>,
  ) => MaybePromise<void>;
  readonly forfeit?: (state: NoInfer<State>, role: string, reason: ForfeitReason) => MaybePromise<void>;
  readonly scoresOthers?: boolean;
  readonly tools?: { readonly [K in keyof Inputs]: ToolDefinition<NoInfer<State>, Inputs[K]> };
  readonly toolsOf?: (state: NoInfer<State>, role: string | null) => readonly ToolDefinition<NoInfer<State>>[];
  readonly mcp?: (state: NoInfer<State>) => McpSurface;
  readonly rewards?: { readonly [K in keyof RewardInputs]: RewardDefinition<NoInfer<State>, RewardInputs[K]> };
  readonly functions?: { readonly [K in keyof FunctionInputs]: FunctionDefinition<NoInfer<State>, FunctionInputs[K]> };
  readonly health?: HealthCheck<NoInfer<State>>;
  readonly healthAt?: HealthEndpoint;
  readonly snapshot?: (state: NoInfer<State>) => unknown;
  readonly restore?: (snapshot: unknown, context: SetupContext) => MaybePromise<NoInfer<State>>;
  readonly teardown?: (state: NoInfer<State>) => MaybePromise<void>;
}

/**
 * Defines an environment with explicit state: it can be reset and forked, and many instances can share a process.
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
  return rememberLocation(source as EnvironmentDefinition<State>, defineEnvironment);
}

// The type of the state of a separately defined tool is what its author declares:
// `tool({ …, run: (input, { state }: CallContext<Shop>) => … })`.
// biome-ignore-start lint/suspicious/noExplicitAny: unannotated state cannot be known here

/** Defines a single tool, to be listed in `tools` elsewhere. */
export function tool<Input, State = any>(definition: ToolDefinition<State, Input>): ToolDefinition<State, Input> {
  return rememberLocation(definition, tool);
}

/** Defines a single reward, to be listed in `rewards` elsewhere. */
export function reward<Input, State = any>(definition: RewardDefinition<State, Input>): RewardDefinition<State, Input> {
  return rememberLocation(definition, reward);
}

/** Defines a single function, to be listed in `functions` elsewhere. */
export function fn<Input, State = any>(definition: FunctionDefinition<State, Input>): FunctionDefinition<State, Input> {
  return rememberLocation(definition, fn);
}
// biome-ignore-end lint/suspicious/noExplicitAny: see above
