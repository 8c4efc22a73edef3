import { PlatformError } from "@aenv/contract";
import type {
  CallContext,
  EnvironmentDefinition,
  FunctionDefinition,
  HealthCheck,
  HealthEndpoint,
  HealthReport,
  Parsed,
  RewardDefinition,
  Schema,
  ToolDefinition,
} from "./definition.ts";
import { rememberLocation } from "./source-location.ts";

/**
 * The one-file style: tools, rewards and functions are registered as the author's modules load, and their state is in
 * module variables. Such an environment has one instance per process and cannot be forked.
 */
class Registry {
  readonly tools: ToolDefinition[] = [];
  readonly rewards: RewardDefinition[] = [];
  readonly functions: FunctionDefinition[] = [];
  health: HealthCheck | undefined;
  healthAt: HealthEndpoint | undefined;

  get isEmpty(): boolean {
    return this.tools.length + this.rewards.length + this.functions.length === 0 && this.health === undefined;
  }

  clear(): void {
    this.tools.length = 0;
    this.rewards.length = 0;
    this.functions.length = 0;
    this.health = undefined;
    this.healthAt = undefined;
  }
}

// A process has one registry, even if two copies of this module are loaded, for example from a bundle and from an installed package.
const KEY = Symbol.for("aenv.kit.registry");
const holder = globalThis as Record<symbol, Registry | undefined>;
holder[KEY] ??= new Registry();
const registry = holder[KEY];

type Handler<Input> = (input: Parsed<Input>, context: CallContext<undefined>) => unknown;
type WithoutRun<T> = Omit<T, "run" | "score">;

/**
 * Adds a tool to this process's environment.
 *
 * @example
 * registerTool({ name: "search", description: "Searches the code.", input: z.object({ query: z.string() }) }, ({ query }) => find(query));
 */
export function registerTool<const Input extends Schema>(
  spec: WithoutRun<ToolDefinition<undefined, Input>>,
  handler: Handler<Input>,
): void {
  requireHandler(handler, "registerTool");
  registry.tools.push(rememberLocation({ ...spec, run: handler } as ToolDefinition, registerTool));
}

/** Adds a function, callable by trainers at `/functions/<name>` or at an endpoint of its own. */
export function registerFunction<const Input extends Schema>(
  spec: WithoutRun<FunctionDefinition<undefined, Input>>,
  handler: Handler<Input>,
): void {
  requireHandler(handler, "registerFunction");
  registry.functions.push(rememberLocation({ ...spec, run: handler } as FunctionDefinition, registerFunction));
}

/** Adds a reward; with several, `/task/reward` returns their weighted total and the components. */
export function registerReward<const Input extends Schema>(
  spec: WithoutRun<RewardDefinition<undefined, Input>>,
  handler: Handler<Input>,
): void;
export function registerReward(handler: Handler<Schema>): void;
export function registerReward(first: WithoutRun<RewardDefinition<undefined, Schema>> | Handler<Schema>, second?: Handler<Schema>): void {
  const handler = typeof first === "function" ? first : second;
  requireHandler(handler, "registerReward");
  const spec = typeof first === "function" ? { name: first.name || "reward" } : first;
  const definition = {
    ...spec,
    score: ({ input, ...context }: CallContext<undefined> & { input: Parsed<Schema> }) => handler(input, context),
  };
  registry.rewards.push(rememberLocation(definition as RewardDefinition, registerReward));
}

/** Replaces the default health check; it answers at `/health`, and at an endpoint of its own if it names one. */
export function registerHealth(endpoint: HealthEndpoint, handler: () => HealthReport | Promise<HealthReport>): void;
export function registerHealth(handler: () => HealthReport | Promise<HealthReport>): void;
export function registerHealth(
  first: HealthEndpoint | (() => HealthReport | Promise<HealthReport>),
  second?: () => HealthReport | Promise<HealthReport>,
): void {
  const handler = typeof first === "function" ? first : second;
  requireHandler(handler, "registerHealth");
  registry.health = handler;
  registry.healthAt = typeof first === "function" ? undefined : first;
}

/** The environment that the loaded modules have registered, or null if there is none. Clears the registry. */
export function takeRegistered(): EnvironmentDefinition | null {
  if (registry.isEmpty) return null;
  const { health, healthAt } = registry;
  const definition: EnvironmentDefinition = {
    tools: [...registry.tools],
    rewards: [...registry.rewards],
    functions: [...registry.functions],
    ...(health !== undefined && { health }),
    ...(healthAt !== undefined && { healthAt }),
  };
  registry.clear();
  oneFile.add(definition);
  return definition;
}

const oneFile = new WeakSet<EnvironmentDefinition>();

/** True for an environment whose state is in module variables. */
export function keepsStateInModules(definition: EnvironmentDefinition): boolean {
  return oneFile.has(definition);
}

function requireHandler(handler: unknown, name: string): asserts handler is (...args: never[]) => unknown {
  if (typeof handler === "function") return;
  throw new PlatformError("environment.invalid", `${name} needs a handler function, but got ${handler === null ? "null" : typeof handler}`);
}
