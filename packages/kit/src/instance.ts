import { type CallToolResult, messageOf, PlatformError, type Task } from "@aenv/contract";
import type { Blueprint, BlueprintEndpoint, BlueprintReward, BlueprintTool, Toolset } from "./blueprint.ts";
import { type CallHooks, isPromise, startTimer, untilAborted } from "./call.ts";
import type { EpisodeContext, FunctionDefinition, HealthReport, RewardDefinition, ToolContext } from "./definition.ts";
import { observe } from "./observation.ts";
import { toolFailure, toToolResult } from "./result.ts";
import { type Checked, type CompiledSchema, check } from "./schema.ts";
import { toScore, total } from "./score.ts";
import { readSnapshot, type Snapshot, writeSnapshot } from "./snapshot.ts";
import { toolsFor } from "./toolset.ts";

/** How an episode is to begin. */
export interface EpisodeSpec {
  readonly task: Task | null;
  readonly seed: number;
  readonly variables: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

/** One running environment: an episode's state, and the calls on it. */
export class Instance {
  readonly id: string;
  readonly createdAt = new Date();
  lastActiveAt = 0;
  #blueprint: Blueprint;
  #episode: EpisodeContext;
  #state: unknown;
  #tools: Toolset;
  #running = new Set<AbortController>();
  /** Resets and restores stand in line: two at once would leave a state that belongs to neither. */
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(blueprint: Blueprint, id: string, spec: EpisodeSpec, { state, tools }: Beginning) {
    this.#blueprint = blueprint;
    this.id = id;
    this.#episode = { instanceId: id, ...spec };
    this.#state = state;
    this.#tools = tools;
  }

  static async open(blueprint: Blueprint, id: string, spec: EpisodeSpec, snapshot?: unknown): Promise<Instance> {
    const controller = new AbortController();
    const context = { instanceId: id, ...spec, signal: controller.signal };
    const beginning = snapshot === undefined ? await setUp(blueprint, context) : await readBack(blueprint, snapshot, context);
    return new Instance(blueprint, id, spec, beginning);
  }

  get episode(): EpisodeContext {
    return this.#episode;
  }

  /** The same object until another episode begins that has other tools. */
  get tools(): Toolset {
    return this.#tools;
  }

  get callsInFlight(): number {
    return this.#running.size;
  }

  /** Runs a tool. Whatever its code does wrong is the result's `isError`; this never rejects. */
  callTool(tool: BlueprintTool, args: unknown, hooks: CallHooks): CallToolResult | Promise<CallToolResult> {
    try {
      const checked = check(tool.input, args ?? {});
      if (!(checked instanceof Promise)) return this.#runIfValid(tool, checked, hooks);
      return checked.then((done) => this.#runIfValid(tool, done, hooks)).catch((error: unknown) => toolFailure(messageOf(error)));
    } catch (error) {
      return toolFailure(messageOf(error));
    }
  }

  #runIfValid(tool: BlueprintTool, checked: Checked, hooks: CallHooks): CallToolResult | Promise<CallToolResult> {
    if (checked.ok) return this.runTool(tool, checked.value, hooks);
    return toolFailure(`Input validation error: Invalid arguments for tool ${tool.definition.name}: ${checked.problem}`);
  }

  /** The same for arguments that the tool's schema has already accepted. */
  runTool(tool: BlueprintTool, input: unknown, hooks: CallHooks): CallToolResult | Promise<CallToolResult> {
    const { name, timeoutMs } = tool.definition;
    try {
      const run = () => tool.definition.run(input as never, this.#context(hooks, input));
      const value = this.#run(run, hooks.controller, timeoutMs, `tool '${name}'`);
      const result = isPromise(value)
        ? value.then((done) => toToolResult(done, tool.output, name))
        : toToolResult(value, tool.output, name);
      return isPromise(result) ? result.catch((error: unknown) => toolFailure(messageOf(error))) : result;
    } catch (error) {
      return toolFailure(messageOf(error));
    }
  }

  /** Runs a function, or a reward at its own address; its errors become ours, with its message. */
  async callEndpoint(endpoint: BlueprintEndpoint, args: unknown, hooks: CallHooks): Promise<unknown> {
    const failed = endpoint.kind === "reward" ? "reward.failed" : "function.failed";
    const input = await demand(endpoint.input, args, `${endpoint.kind} '${endpoint.name}'`);
    const context = this.#context(hooks, input);
    const run = () =>
      endpoint.kind === "reward"
        ? (endpoint.definition as RewardDefinition).score({ ...context, input: input as never })
        : (endpoint.definition as FunctionDefinition).run(input as never, context);
    try {
      return await this.#run(run, hooks.controller, endpoint.definition.timeoutMs, `${endpoint.kind} '${endpoint.name}'`);
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      throw new PlatformError(failed, messageOf(error), { cause: error });
    }
  }

  /**
   * The episode's reward. A single plain reward answers what its function returned, as the original does; several, or
   * weighted ones, answer the total and the components.
   */
  async reward(args: unknown, hooks: CallHooks): Promise<unknown> {
    const { rewards, name } = this.#blueprint;
    const [first] = rewards;
    if (first === undefined) {
      throw new PlatformError("reward.missing", `environment '${name}' defines no reward; add one to 'rewards' or call registerReward`);
    }
    if (rewards.length === 1 && first.weight === 1) {
      const value = await this.#score(first, args, hooks);
      if (value === undefined || typeof value === "number") toScore(value, first.definition.name);
      return value;
    }
    const parts: { name: string; weight: number; score: number }[] = [];
    for (const one of rewards) {
      const { name: part } = one.definition;
      parts.push({ name: part, weight: one.weight, score: toScore(await this.#score(one, args, hooks), part) });
    }
    return total(parts);
  }

  #score(reward: BlueprintReward, args: unknown, hooks: CallHooks): Promise<unknown> {
    const { definition, input } = reward;
    return this.callEndpoint(
      { kind: "reward", name: definition.name, method: "POST", path: "/task/reward", input, definition },
      args,
      hooks,
    );
  }

  /** The environment's own health check, or ours if it has none. */
  async health(): Promise<HealthReport> {
    const own = this.#blueprint.definition.health;
    if (own !== undefined) return await own({ ...this.#episode, state: this.#state });
    return {
      status: "success",
      message: "MCP server is healthy",
      details: { tool_count: this.#tools.size, event_loop_utilization: loopUtilization() },
      last_active: this.lastActiveAt / 1_000,
    };
  }

  /** Begins a new episode and gives its first observation. If its setup fails the old one goes on. */
  reset(spec: EpisodeSpec): Promise<unknown> {
    return this.#inTurn(async () => {
      if (this.#blueprint.keepsStateInModules) throw moduleState(this.#blueprint.name, "reset");
      const controller = new AbortController();
      const episode = { instanceId: this.id, ...spec };
      const context = { ...episode, signal: controller.signal };
      const beginning = await setUp(this.#blueprint, context);
      const observation = await observeOrClose(this.#blueprint, beginning.state, context);
      this.#replace(episode, beginning, "the episode was reset");
      return observation;
    });
  }

  snapshot(): Promise<Snapshot> {
    return this.#inTurn(() => {
      if (this.#blueprint.keepsStateInModules) throw moduleState(this.#blueprint.name, "snapshot");
      return writeSnapshot(this.#blueprint.definition, this.#state, identityOf(this.#blueprint));
    });
  }

  restore(snapshot: unknown): Promise<void> {
    return this.#inTurn(async () => {
      const controller = new AbortController();
      const beginning = await readBack(this.#blueprint, snapshot, { ...this.#episode, signal: controller.signal });
      this.#replace(this.#episode, beginning, "the state was restored from a snapshot");
    });
  }

  /** Aborts what still runs and lets the environment close what its setup opened. */
  async close(reason: string): Promise<void> {
    this.abortCalls(reason);
    await this.#turn.catch(() => {});
    await this.#blueprint.definition.teardown?.(this.#state);
    this.#state = undefined;
  }

  abortCalls(reason: string): void {
    for (const controller of this.#running) controller.abort(new PlatformError("request.cancelled", reason));
  }

  #context(hooks: CallHooks, input: unknown): ToolContext<unknown> {
    const { instanceId, task, seed, variables, args } = this.#episode;
    return {
      instanceId,
      task,
      seed,
      variables,
      args,
      state: this.#state,
      signal: hooks.controller.signal,
      log: hooks.log,
      progress: hooks.progress,
      inputText: hooks.inputText ?? (() => JSON.stringify(input)),
    };
  }

  /** Runs author code; synchronous code is answered at once, asynchronous code is watched. */
  #run(code: () => unknown, controller: AbortController, timeoutMs: number | undefined, what: string): unknown {
    this.lastActiveAt = Date.now();
    const value = code();
    if (!isPromise(value)) return value;
    this.#running.add(controller);
    const stopTimer = startTimer(controller, timeoutMs, what);
    return untilAborted(value, controller.signal).finally(() => {
      stopTimer();
      this.#running.delete(controller);
      this.lastActiveAt = Date.now();
    });
  }

  #replace(episode: EpisodeContext, { state, tools }: Beginning, reason: string): void {
    const old = this.#state;
    this.abortCalls(reason);
    this.#episode = episode;
    this.#state = state;
    this.#tools = tools;
    void this.#blueprint.definition.teardown?.(old);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => {});
    return mine;
  }
}

export function moduleState(name: string, verb: string): PlatformError {
  return new PlatformError(
    "instance.unsupported",
    `environment '${name}' keeps its state in its modules (register*), so one process holds one instance and cannot ${verb} it; use defineEnvironment with 'setup' to make the state a value`,
  );
}

function identityOf(blueprint: Blueprint): string {
  return `${blueprint.name}@${blueprint.version}`;
}

type Opening = EpisodeContext & { readonly signal: AbortSignal };

/** What an episode begins with. */
interface Beginning {
  readonly state: unknown;
  readonly tools: Toolset;
}

async function setUp(blueprint: Blueprint, context: Opening): Promise<Beginning> {
  let state: unknown;
  try {
    state = await blueprint.definition.setup?.(context);
  } catch (error) {
    throw new PlatformError("instance.setup_failed", `setup of '${blueprint.name}' failed: ${messageOf(error)}`, { cause: error });
  }
  return withTools(blueprint, state);
}

async function readBack(blueprint: Blueprint, snapshot: unknown, context: Opening): Promise<Beginning> {
  if (blueprint.keepsStateInModules) throw moduleState(blueprint.name, "restore");
  return withTools(blueprint, await readSnapshot(blueprint.definition, snapshot, identityOf(blueprint), context));
}

/** A state that cannot be shown begins no episode, so what it holds open is closed. */
async function observeOrClose(blueprint: Blueprint, state: unknown, context: Opening): Promise<unknown> {
  try {
    return await observe(blueprint, state, context);
  } catch (error) {
    await blueprint.definition.teardown?.(state);
    throw error;
  }
}

/** A state whose tools cannot be named begins no episode, so what it holds open is closed. */
async function withTools(blueprint: Blueprint, state: unknown): Promise<Beginning> {
  try {
    return { state, tools: await toolsFor(blueprint, state) };
  } catch (error) {
    await blueprint.definition.teardown?.(state);
    throw error;
  }
}

async function demand(schema: CompiledSchema, args: unknown, what: string): Promise<unknown> {
  const checked = await check(schema, args ?? {});
  if (checked.ok) return checked.value;
  throw new PlatformError("request.invalid", `invalid arguments for ${what}: ${checked.problem}`);
}

let lastUtilization = performance.eventLoopUtilization();

/** The share of time since the last look in which the process was busy: near 1, its answers come late. */
function loopUtilization(): number {
  const now = performance.eventLoopUtilization();
  const { utilization } = performance.eventLoopUtilization(now, lastUtilization);
  lastUtilization = now;
  return Math.round(utilization * 1_000) / 1_000;
}
