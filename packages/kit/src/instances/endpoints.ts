import { isPlatformError, type Json, messageOf, type Outcome, PlatformError, type RoleRewards } from "@aenv/contract";
import type { CompiledEndpoint, CompiledEnvironment, CompiledReward } from "../compile/environment.ts";
import { type CompiledSchema, check } from "../compile/schema.ts";
import type { FunctionDefinition, RewardContext, RewardDefinition, ToolContext } from "../definition/definition.ts";
import { jsonOrThrow } from "../json/to-json.ts";
import type { CallHooks } from "./call.ts";
import type { EpisodePath } from "./episode-path.ts";
import type { RolePlay } from "./role-play.ts";
import type { RunningCalls } from "./running-calls.ts";
import { toScore, totalOf } from "./score.ts";

const FAILED = { function: "function.failed", reward: "reward.failed" } as const;

export interface EndpointsOptions {
  readonly environment: CompiledEnvironment;
  readonly calls: RunningCalls;
  readonly path: () => EpisodePath | null;
  /** Why a model of the environment's agent has failed in this episode; null if none has. */
  readonly modelFailure: () => string | null;
  readonly context: (hooks: CallHooks, input: unknown) => ToolContext<unknown>;
  /** Null without roles. */
  readonly play: RolePlay | null;
  readonly logFailure: (what: string, error: unknown, controller: AbortController) => void;
}

/** The functions and rewards of an instance, which only trainers call. */
export class Endpoints {
  readonly #options: EndpointsOptions;

  constructor(options: EndpointsOptions) {
    this.#options = options;
  }

  /** Runs a function, or a reward at its own path, and returns its result as JSON. */
  async call(endpoint: CompiledEndpoint, args: unknown, hooks: CallHooks): Promise<Json> {
    const { roles } = this.#options.environment;
    const { kind, name, definition } = endpoint;
    const read = async (role: string | null) =>
      jsonOrThrow(FAILED[kind], await this.#run(endpoint, args, { ...hooks, role }), `the result of ${kind} '${name}'`);
    // With roles, a reward at its own path answers for each role that it is for.
    if (roles === null || kind === "function" || (definition as RewardDefinition).role === null) {
      const value = await read(null);
      if (kind === "function") this.#options.play?.changed();
      return value;
    }
    const values: Record<string, Json> = {};
    for (const role of roles.names) if (isFor(definition as RewardDefinition, role)) values[role] = await read(role);
    return values;
  }

  /** Errors of the environment's code become platform errors with the same message. */
  async #run(endpoint: CompiledEndpoint, args: unknown, hooks: CallHooks): Promise<unknown> {
    const { calls, logFailure } = this.#options;
    const what = `${endpoint.kind} '${endpoint.name}'`;
    try {
      const input = await checkArguments(endpoint.input, args, what);
      const context = this.#options.context(hooks, input);
      const run = () =>
        endpoint.kind === "reward"
          ? this.#runScore(endpoint.definition as RewardDefinition, { ...context, input: input as never })
          : (endpoint.definition as FunctionDefinition).run(input as never, context);
      return await calls.run(run, hooks.controller, endpoint.definition.timeoutMs, what);
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      logFailure(what, error, hooks.controller);
      throw new PlatformError(FAILED[endpoint.kind], messageOf(error), { cause: error });
    }
  }

  /** With a fresh sandbox, if the reward asks for one. */
  #runScore(reward: RewardDefinition, context: Omit<RewardContext, "path">): unknown {
    if (reward.sandbox !== "fresh") return reward.score(this.#withPath(reward, context));
    return (async () => {
      await using sandbox = await context.sandboxes.fresh();
      return await reward.score(this.#withPath(reward, { ...context, sandbox }));
    })();
  }

  /** An empty path would look like that of an agent that did nothing, so a reward that did not ask for it cannot read it. */
  #withPath({ name, path }: RewardDefinition, context: Omit<RewardContext, "path">): RewardContext {
    if (path === true) return { ...context, path: this.#options.path()?.read() ?? [] };
    return Object.defineProperty(context, "path", {
      get: () => {
        throw new PlatformError("reward.failed", `reward '${name}' reads 'path', which is recorded only for rewards with 'path: true'`);
      },
    }) as RewardContext;
  }

  /**
   * The episode's reward. For a single reward of weight 1 it is what the reward's function returned, as in the original; otherwise
   * the weighted total and the components.
   */
  async reward(args: unknown, hooks: CallHooks): Promise<Json> {
    const { rewards, name } = this.#options.environment;
    const [first] = rewards;
    if (first === undefined) {
      throw new PlatformError("reward.missing", `environment '${name}' defines no reward; add one to 'rewards' or call registerReward`);
    }
    // What an agent did without its model says nothing about the agent.
    const failure = this.#options.modelFailure();
    if (failure !== null) throw new PlatformError("model.failed", `a model of the agent failed in this episode: ${failure}`);
    if (this.#options.play !== null) return (await this.#roleRewards(this.#options.play, args, hooks)) as Json;
    if (rewards.length > 1 || first.weight !== 1) return (await totalOf(rewards, (one) => this.#score(one, args, hooks))) as Json;
    const value = await this.#score(first, args, hooks);
    const { name: part } = first.definition;
    if (value === undefined || typeof value === "number") toScore(value, part);
    return jsonOrThrow("reward.failed", value, `the result of reward '${part}'`);
  }

  /** Each role has an outcome of its own: a reward that fails for one leaves the others scored. */
  async #roleRewards(play: RolePlay, args: unknown, hooks: CallHooks): Promise<RoleRewards> {
    const { rewards, roles } = this.#options.environment;
    const names = roles?.names ?? [];
    const shared = rewards.filter(({ definition }) => definition.role === null);
    const isStopped = names.every((role) => play.unscored(role) !== null);
    const whole = shared.length === 0 || isStopped ? null : await this.#outcome(shared, args, hooks);
    const outcomes: Record<string, { outcome: Outcome }> = {};
    for (const role of names) {
      const own = rewards.filter(({ definition }) => definition.role !== null && isFor(definition, role));
      const outcome = play.unscored(role) ?? (own.length === 0 ? whole : await this.#outcome(own, args, { ...hooks, role }));
      outcomes[role] = { outcome: outcome ?? noReward(role) };
    }
    if (shared.length > 0) {
      if (whole?.kind !== "scored") return { reward: null, components: {}, roles: outcomes };
      const { kind: _, ...total } = whole;
      return { ...total, roles: outcomes };
    }
    const components: Record<string, number> = {};
    for (const [role, { outcome }] of Object.entries(outcomes)) if (outcome.kind === "scored") components[role] = outcome.reward;
    const scores = Object.values(components);
    const sum = scores.length === names.length ? scores.reduce((before, score) => before + score, 0) : null;
    return { reward: sum, components, roles: outcomes };
  }

  /** The total of these rewards. A failure of the environment's code leaves it unscored; one of the platform or the caller is thrown. */
  async #outcome(rewards: readonly CompiledReward[], args: unknown, hooks: CallHooks): Promise<Outcome> {
    try {
      return { kind: "scored", ...(await totalOf(rewards, (one) => this.#score(one, args, hooks))) };
    } catch (error) {
      if (!isPlatformError(error, "reward.failed", "tool.timeout")) throw error;
      const { message, retryable } = error;
      return { kind: "unscored", cause: "environment", stage: "score", retryable, message };
    }
  }

  #score(reward: CompiledReward, args: unknown, hooks: CallHooks): Promise<unknown> {
    const { definition, input } = reward;
    return this.#run({ kind: "reward", name: definition.name, method: "POST", path: "/task/reward", input, definition }, args, hooks);
  }
}

function isFor({ role }: RewardDefinition, name: string): boolean {
  return role === undefined || role === name;
}

function noReward(role: string): Outcome {
  const message = `the environment defines no reward for ${role}`;
  return { kind: "unscored", cause: "environment", stage: "score", retryable: false, message };
}

async function checkArguments(schema: CompiledSchema, args: unknown, what: string): Promise<unknown> {
  const checked = await check(schema, args ?? {});
  if (checked.ok) return checked.value;
  throw new PlatformError("request.invalid", `invalid arguments for ${what}: ${checked.problem}`);
}
