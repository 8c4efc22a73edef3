import { type CallToolResult, type Json, messageOf, PlatformError, type Task } from "@aenv/contract";
import type { CompiledEndpoint, CompiledReward, CompiledTool, Toolset } from "../compile/environment.ts";
import { type Checked, type CompiledSchema, check } from "../compile/schema.ts";
import { toolFailure, toToolResult } from "../compile/tool-result.ts";
import type { EpisodeContext, FunctionDefinition, HealthReport, RewardDefinition, ToolContext } from "../definition/definition.ts";
import { jsonOrThrow } from "../json/to-json.ts";
import { type CallHooks, follow, isPromise, startTimer, toolTimeout, untilAborted } from "./call.ts";
import { toScore, total } from "./score.ts";
import { type EpisodeStart, type HostContext, identityOf, observeOrTearDown, restoreState, setUp, tearDown } from "./setup.ts";
import { type Snapshot, writeSnapshot } from "./snapshot.ts";

const FAILED = { function: "function.failed", reward: "reward.failed" } as const;

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
  readonly #host: HostContext;
  #episode: EpisodeContext;
  #state: unknown;
  #tools: Toolset;
  #running = new Set<AbortController>();
  /** Resets, restores and snapshots that run or wait; most instances never have one. */
  #changes: Set<AbortController> | undefined;
  #isClosed = false;
  /** Resets and restores stand in line: two at once would leave a state that belongs to neither. */
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(host: HostContext, id: string, spec: EpisodeSpec, { state, tools }: EpisodeStart) {
    this.#host = host;
    this.id = id;
    this.#episode = { instanceId: id, ...spec };
    this.#state = state;
    this.#tools = tools;
  }

  /** Sets an instance up, or reads it from a snapshot; whoever holds the controller can give that up. */
  static async open(host: HostContext, id: string, spec: EpisodeSpec, controller: AbortController, snapshot?: unknown): Promise<Instance> {
    const episode = { instanceId: id, ...spec };
    if (snapshot !== undefined && host.environment.keepsStateInModules) throw moduleStateError(host.environment.name, "restore");
    const start = snapshot === undefined ? await setUp(host, episode, controller) : await restoreState(host, snapshot, episode, controller);
    return new Instance(host, id, spec, start);
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
  callTool(tool: CompiledTool, args: unknown, hooks: CallHooks): CallToolResult | Promise<CallToolResult> {
    try {
      const checked = check(tool.input, args ?? {});
      if (!(checked instanceof Promise)) return this.#runIfValid(tool, checked, hooks);
      return checked.then((done) => this.#runIfValid(tool, done, hooks)).catch((error: unknown) => this.#toolFailed(tool, error, hooks));
    } catch (error) {
      return this.#toolFailed(tool, error, hooks);
    }
  }

  #runIfValid(tool: CompiledTool, checked: Checked, hooks: CallHooks): CallToolResult | Promise<CallToolResult> {
    if (checked.ok) return this.runTool(tool, checked.value, hooks);
    return toolFailure(`Input validation error: Invalid arguments for tool ${tool.definition.name}: ${checked.problem}`);
  }

  /** The same for arguments that the tool's schema has already accepted. */
  runTool(tool: CompiledTool, input: unknown, hooks: CallHooks): CallToolResult | Promise<CallToolResult> {
    const { name, timeoutMs } = tool.definition;
    try {
      const run = () => tool.definition.run(input as never, this.#context(hooks, input));
      const value = this.#run(run, hooks.controller, timeoutMs, `tool '${name}'`);
      const result = isPromise(value)
        ? value.then((done) => toToolResult(done, tool.output, name))
        : toToolResult(value, tool.output, name);
      return isPromise(result) ? result.catch((error: unknown) => this.#toolFailed(tool, error, hooks)) : result;
    } catch (error) {
      return this.#toolFailed(tool, error, hooks);
    }
  }

  /** The agent gets the message; the stack goes to the log. */
  #toolFailed({ definition }: CompiledTool, error: unknown, { controller }: CallHooks): CallToolResult {
    this.#note(`tool '${definition.name}'`, error, controller);
    return toolFailure(messageOf(error));
  }

  /** What code does after it was told to stop is no failure of it. */
  #note(what: string, error: unknown, controller?: AbortController): void {
    if (controller?.signal.aborted !== true) this.#host.log(`${what} of instance '${this.id}'`, error);
  }

  /** Runs a function, or a reward at its own address, and gives what it returned as JSON carries it. */
  async callEndpoint(endpoint: CompiledEndpoint, args: unknown, hooks: CallHooks): Promise<Json> {
    const value = await this.#runEndpoint(endpoint, args, hooks);
    return jsonOrThrow(FAILED[endpoint.kind], value, `what ${endpoint.kind} '${endpoint.name}' returned`);
  }

  /** Errors of the environment's code become ours, with its message. */
  async #runEndpoint(endpoint: CompiledEndpoint, args: unknown, hooks: CallHooks): Promise<unknown> {
    const what = `${endpoint.kind} '${endpoint.name}'`;
    try {
      const input = await demand(endpoint.input, args, what);
      const context = this.#context(hooks, input);
      const run = () =>
        endpoint.kind === "reward"
          ? (endpoint.definition as RewardDefinition).score({ ...context, input: input as never })
          : (endpoint.definition as FunctionDefinition).run(input as never, context);
      return await this.#run(run, hooks.controller, endpoint.definition.timeoutMs, what);
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      this.#note(what, error, hooks.controller);
      throw new PlatformError(FAILED[endpoint.kind], messageOf(error), { cause: error });
    }
  }

  /**
   * The episode's reward. A single plain reward answers what its function returned, as the original does; several, or
   * weighted ones, answer the total and the components.
   */
  async reward(args: unknown, hooks: CallHooks): Promise<Json> {
    const { rewards, name } = this.#host.environment;
    const [first] = rewards;
    if (first === undefined) {
      throw new PlatformError("reward.missing", `environment '${name}' defines no reward; add one to 'rewards' or call registerReward`);
    }
    if (rewards.length === 1 && first.weight === 1) {
      const value = await this.#score(first, args, hooks);
      const { name: part } = first.definition;
      if (value === undefined || typeof value === "number") toScore(value, part);
      return jsonOrThrow("reward.failed", value, `what reward '${part}' returned`);
    }
    const parts: { name: string; weight: number; score: number }[] = [];
    for (const one of rewards) {
      const { name: part } = one.definition;
      parts.push({ name: part, weight: one.weight, score: toScore(await this.#score(one, args, hooks), part) });
    }
    return total(parts) as unknown as Json;
  }

  #score(reward: CompiledReward, args: unknown, hooks: CallHooks): Promise<unknown> {
    const { definition, input } = reward;
    return this.#runEndpoint(
      { kind: "reward", name: definition.name, method: "POST", path: "/task/reward", input, definition },
      args,
      hooks,
    );
  }

  /** The environment's own health check, or ours if it has none. */
  async health(): Promise<HealthReport> {
    const { definition } = this.#host.environment;
    if (definition.health !== undefined) {
      try {
        const report = await definition.health({ ...this.#episode, state: this.#state });
        return jsonOrThrow("health.failed", report, "what the health check returned") as unknown as HealthReport;
      } catch (error) {
        if (error instanceof PlatformError) throw new PlatformError("health.failed", error.message, { cause: error });
        this.#note("health check", error);
        throw new PlatformError("health.failed", messageOf(error), { cause: error });
      }
    }
    return {
      status: "success",
      message: "MCP server is healthy",
      details: { tool_count: this.#tools.size, event_loop_utilization: loopUtilization() },
      last_active: this.lastActiveAt / 1_000,
    };
  }

  /** Begins a new episode and gives its first observation. If its setup fails the old one goes on. */
  reset(spec: EpisodeSpec, signal?: AbortSignal): Promise<Json> {
    return this.#inTurn("reset", signal, async (controller) => {
      const episode = { instanceId: this.id, ...spec };
      const start = await setUp(this.#host, episode, controller);
      const observation = await observeOrTearDown(this.#host, start.state, episode, controller);
      this.#replace(episode, start, "the episode was reset");
      return observation;
    });
  }

  snapshot(signal?: AbortSignal): Promise<Snapshot> {
    return this.#inTurn("snapshot", signal, async ({ signal: own }) => {
      const { environment, log } = this.#host;
      try {
        return await untilAborted(writeSnapshot(environment.definition, this.#state, identityOf(environment)), own);
      } catch (error) {
        if (error instanceof PlatformError || own.aborted) throw error;
        log(`snapshot of instance '${this.id}'`, error);
        throw new PlatformError("snapshot.unsupported", `snapshot of '${environment.name}' failed: ${messageOf(error)}`, { cause: error });
      }
    });
  }

  restore(snapshot: unknown, signal?: AbortSignal): Promise<void> {
    return this.#inTurn("restore", signal, async (controller) => {
      const start = await restoreState(this.#host, snapshot, this.#episode, controller);
      this.#replace(this.#episode, start, "the state was restored from a snapshot");
    });
  }

  /** Aborts what still runs and lets the environment close what its setup opened. */
  async close(reason: string): Promise<void> {
    this.#isClosed = true;
    this.abort(reason);
    await this.#turn;
    await tearDown(this.#host, this.id, this.#state);
    this.#state = undefined;
  }

  /** Aborts calls, and what would replace the state: a setup that hangs must not hold up the end. */
  abort(reason: string): void {
    this.#abortCalls(reason);
    for (const controller of this.#changes ?? []) controller.abort(new PlatformError("request.cancelled", reason));
  }

  #abortCalls(reason: string): void {
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
    const stopTimer = startTimer(controller, timeoutMs, () => toolTimeout(what, timeoutMs));
    return untilAborted(value, controller.signal).finally(() => {
      stopTimer();
      this.#running.delete(controller);
      this.lastActiveAt = Date.now();
    });
  }

  #replace(episode: EpisodeContext, { state, tools }: EpisodeStart, reason: string): void {
    const old = this.#state;
    this.#abortCalls(reason);
    this.#episode = episode;
    this.#state = state;
    this.#tools = tools;
    void tearDown(this.#host, this.id, old);
  }

  /** Changes of the whole state come one after the other, and each can be given up: by its caller's signal, or by the instance's end. */
  #inTurn<T>(verb: string, signal: AbortSignal | undefined, work: (controller: AbortController) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const unfollow = follow(controller, signal);
    this.#changes ??= new Set();
    this.#changes.add(controller);
    const mine = this.#turn
      .then(() => {
        const { name, keepsStateInModules } = this.#host.environment;
        if (keepsStateInModules) throw moduleStateError(name, verb);
        controller.signal.throwIfAborted();
        if (this.#isClosed) throw new PlatformError("instance.gone", `instance '${this.id}' has ended`);
        return work(controller);
      })
      .finally(() => {
        unfollow();
        this.#changes?.delete(controller);
      });
    this.#turn = mine.catch(() => {});
    return mine;
  }
}

export function moduleStateError(name: string, verb: string): PlatformError {
  return new PlatformError(
    "instance.unsupported",
    `environment '${name}' keeps its state in its modules (register*), so one process holds one instance and cannot ${verb} it; use defineEnvironment with 'setup' to make the state a value`,
  );
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
