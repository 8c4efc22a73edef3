import {
  type CallToolResult,
  type ChatMessage,
  type EpisodeReply,
  type EpisodeStatus,
  type ForfeitReason,
  type Json,
  messageOf,
  PlatformError,
  STATUS_META,
  type Unscored,
} from "@aenv/contract";
import type { CompiledEnvironment, CompiledTool, Toolset } from "../compile/environment.ts";
import type { CompiledRoles } from "../compile/roles.ts";
import { check } from "../compile/schema.ts";
import { toolFailure, toToolResult } from "../compile/tool-result.ts";
import type { StateContext } from "../definition/definition.ts";
import { jsonOrThrow } from "../json/to-json.ts";
import { TurnOrder, type TurnRecord } from "../roles/turn-order.ts";
import { isPlatformFault } from "../sandboxes/faults.ts";
import { type CallHooks, quietHooks, untilAborted } from "./call.ts";
import { statusFrom } from "./episode-parts.ts";
import type { RunningCalls } from "./running-calls.ts";
import type { ToolSurface } from "./tool-surface.ts";

export interface RolePlayOptions {
  readonly environment: CompiledEnvironment;
  readonly roles: CompiledRoles;
  readonly calls: RunningCalls;
  readonly instanceId: () => string;
  /** The current state, as a role or, with null, all of them see it. */
  readonly state: (role: string | null) => StateContext<unknown>;
  /** What a role sees now. */
  readonly view: (role: string, hooks: CallHooks) => Promise<Json>;
  /** Runs a tool; `finish` makes the result of what it returned. */
  readonly runTool: (
    tool: CompiledTool,
    args: unknown,
    hooks: CallHooks,
    finish?: (value: unknown) => CallToolResult,
  ) => CallToolResult | Promise<CallToolResult>;
  readonly logFailure: (what: string, error: unknown, controller?: AbortController) => void;
}

/** The agent of a role that waits for its turn may do so in so many calls at once. */
const MAX_WAITS = 16;
/** How long a snapshot waits for the call of a role that runs. */
const SNAPSHOT_WAIT_MS = 30_000;

/** The turns of an instance with roles: calls of roles run one after the other, each only in its turn. */
export class RolePlay {
  readonly #options: RolePlayOptions;
  readonly #surfaces: ReadonlyMap<string, RoleSurface>;
  #order: TurnOrder;
  #tools: ReadonlyMap<string, Toolset>;
  /** Resolves when the last call of a role is done. */
  #last: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  /** Grows with each change, so that none is missed while the state is read. */
  #version = 0;
  readonly #wakers = new Set<() => void>();
  #endsWaits = false;
  readonly #waits = new Map<string, number>();

  constructor(options: RolePlayOptions, tools: ReadonlyMap<string, Toolset>, record: TurnRecord | null) {
    this.#options = options;
    this.#tools = tools;
    this.#order = this.#newOrder(record);
    this.#surfaces = new Map(options.roles.names.map((role) => [role, new RoleSurface(this, role)]));
    if (this.#order.hasStarted) this.changed();
  }

  get id(): string {
    return this.#options.instanceId();
  }

  toolsOf(role: string): Toolset {
    return this.#tools.get(role) as Toolset;
  }

  surfaceOf(role: string): RoleSurface {
    const surface = this.#surfaces.get(role);
    if (surface !== undefined) return surface;
    const { environment, roles } = this.#options;
    throw new PlatformError(
      "role.not_found",
      `environment '${environment.name}' has no role '${role}'; its roles are ${roles.names.join(", ")}`,
    );
  }

  /** A new episode begins, or that of a snapshot goes on. */
  begin(tools: ReadonlyMap<string, Toolset>, record: TurnRecord | null): void {
    this.#tools = tools;
    this.#order = this.#newOrder(record);
    this.#last = Promise.resolve();
    this.changed();
  }

  /** Whether the episode is over, and who may act. */
  async status(): Promise<EpisodeStatus> {
    const { status } = this.#options.environment.definition;
    const own = statusFrom(status === undefined ? false : await status(this.#options.state(null)));
    const due = this.#due();
    const order = this.#order;
    if (own.done || order.isOver(due)) return { done: true, reason: own.reason ?? order.whyOver(), turn: [] };
    return { done: false, reason: own.reason, turn: order.mayAct(due) };
  }

  async callTool(role: string, tool: CompiledTool, args: unknown, hooks: CallHooks): Promise<CallToolResult> {
    this.#start();
    try {
      return await this.#withStatus(await this.#call(role, tool, args, { ...hooks, role }));
    } catch (error) {
      if (isPlatformFault(error)) throw error;
      return toolFailure(messageOf(error));
    }
  }

  /** What the other side says to the words of a role's agent, which are a move where the environment has a reply. */
  async reply(role: string, hooks: CallHooks, run: () => Promise<EpisodeReply>): Promise<EpisodeReply> {
    const { environment } = this.#options;
    this.#start();
    const reply = await this.#inOrder(hooks.controller.signal, async (): Promise<EpisodeReply> => {
      const order = this.#order;
      const refusal = order.refusalOf(role, this.#due());
      if (refusal !== null) return { messages: [userMessage(refusal)], status: await this.status() };
      if (environment.definition.reply === undefined) {
        if (order.noteInvalidMove(role)) await this.#giveUp(role, "invalid_moves");
        return { messages: [userMessage("it is your turn: call one of your tools")], status: await this.status() };
      }
      const said = await run();
      order.noteMove(role);
      return said.status.done ? { ...said, status: { ...said.status, turn: [] } } : { ...said, status: await this.status() };
    });
    this.changed();
    return reply;
  }

  /** Ends the play of a role. True if the environment defines what that means. */
  async forfeit(role: string, reason: ForfeitReason, hooks: CallHooks): Promise<boolean> {
    await this.#inOrder(hooks.controller.signal, async () => {
      // What has ended is not changed any more.
      if (!(await this.status()).done) await this.#giveUp(role, reason);
    });
    this.changed();
    return this.#order.departureOf(role)?.forfeited ?? false;
  }

  /** Why a role has no score whatever the rewards say; null if they decide. */
  unscored(role: string): Unscored | null {
    return this.#order.unscored(role);
  }

  /** Reads the state between two calls of roles, together with what waits beside it. */
  async between<T>(signal: AbortSignal, read: (record: TurnRecord) => Promise<T>): Promise<T> {
    const limit = AbortSignal.timeout(SNAPSHOT_WAIT_MS);
    try {
      return await this.#inOrder(AbortSignal.any([signal, limit]), () => read(this.#order.record()));
    } catch (error) {
      if (signal.aborted || !limit.aborted) throw error;
      throw new PlatformError("instance.busy", `a call of a role of instance '${this.id}' has not ended in ${SNAPSHOT_WAIT_MS} ms`);
    }
  }

  /** What equal episodes have in common beside their states; null if that is nothing. */
  facts(): object | null {
    const facts = this.#order.facts();
    return Object.values(facts).every((one) => Object.keys(one).length === 0) ? null : facts;
  }

  /** The state may have changed: agents that wait look at it again. */
  changed(): void {
    this.#version++;
    for (const wake of this.#wakers) wake();
    this.#setTimer();
  }

  /** Answers agents that wait for their turns, because the process ends. */
  endWaits(): void {
    this.#endsWaits = true;
    this.changed();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  async #call(role: string, tool: CompiledTool, args: unknown, hooks: CallHooks): Promise<CallToolResult> {
    const { environment, runTool } = this.#options;
    if (tool === environment.waitTool) return this.#wait(role, tool, args, hooks);
    const result =
      tool.definition.outOfTurn === true
        ? await runTool(tool, args, hooks)
        : await this.#inOrder(hooks.controller.signal, () => this.#act(role, tool, args, hooks));
    this.changed();
    return result;
  }

  async #act(role: string, tool: CompiledTool, args: unknown, hooks: CallHooks): Promise<CallToolResult> {
    const { environment, runTool, view, logFailure } = this.#options;
    const order = this.#order;
    const refusal = order.refusalOf(role, this.#due());
    if (refusal !== null) return toolFailure(refusal);
    const { resolve } = environment.definition;
    const wait = (action: unknown): CallToolResult => {
      order.waiting.set(role, jsonOrThrow("tool.failed", action ?? null, `what tool '${tool.definition.name}' returned`));
      return { content: [] };
    };
    const result = await runTool(tool, args, hooks, resolve === undefined ? undefined : wait);
    if (order !== this.#order) return result;
    if (result.isError === true) {
      // What a client cancels or a timeout ends is no invalid move.
      if (!hooks.controller.signal.aborted && order.noteInvalidMove(role)) await this.#giveUp(role, "invalid_moves");
      return result;
    }
    order.noteMove(role);
    if (resolve === undefined) return result;
    try {
      await this.#resolveIfAllActed(hooks.controller);
    } catch (error) {
      order.waiting.delete(role);
      logFailure("'resolve'", error, hooks.controller);
      throw error;
    }
    if (order.waiting.has(role)) return toToolResult({ waiting: order.mayAct(this.#due()) }, null, tool.definition.name);
    return toToolResult({ waiting: [], observation: await view(role, hooks) }, null, tool.definition.name);
  }

  async #resolveIfAllActed(controller: AbortController): Promise<void> {
    const { environment, roles, calls, state } = this.#options;
    const { resolve } = environment.definition;
    const order = this.#order;
    if (resolve === undefined) return;
    // Those who have left are not waited for, if the environment has decided what that means.
    const due = this.#due().filter((role) => order.departureOf(role)?.forfeited !== true);
    if (due.length === 0) order.waiting.clear();
    if (order.waiting.size === 0) return;
    if (!due.every((role) => order.waiting.has(role))) return;
    const acted = roles.names.filter((role) => order.waiting.has(role));
    const actions = Object.fromEntries(acted.map((role) => [role, order.waiting.get(role)]));
    const context = state(null);
    await calls.run(() => resolve.call(environment.definition, actions, context.state, context), controller, undefined, "'resolve'");
    order.waiting.clear();
  }

  async #giveUp(role: string, reason: ForfeitReason): Promise<void> {
    const { environment, state, calls, logFailure } = this.#options;
    const { forfeit } = environment.definition;
    const order = this.#order;
    if (order.departureOf(role) !== null) return;
    order.leave(role, reason);
    if (forfeit === undefined) return;
    const controller = new AbortController();
    try {
      await calls.run(() => forfeit.call(environment.definition, state(role).state, role, reason), controller, undefined, "'forfeit'");
      order.settleDeparture(role);
      await this.#resolveIfAllActed(controller);
    } catch (error) {
      // The role is then unscored, as without `forfeit`.
      logFailure(`'forfeit' of ${role}`, error, controller);
    }
  }

  async #wait(role: string, tool: CompiledTool, args: unknown, hooks: CallHooks): Promise<CallToolResult> {
    const { calls } = this.#options;
    const checked = await check(tool.input, args ?? {});
    const { name } = tool.definition;
    if (!checked.ok) return toolFailure(`Input validation error: Invalid arguments for tool ${name}: ${checked.problem}`);
    const { timeout_s: seconds } = checked.value as { readonly timeout_s: number };
    const waits = this.#waits.get(role) ?? 0;
    if (waits >= MAX_WAITS) return toolFailure(`${MAX_WAITS} calls of ${name} run already; wait for one of them`);
    this.#waits.set(role, waits + 1);
    try {
      const seen = await calls.run(() => this.#untilTurn(role, seconds * 1_000, hooks), hooks.controller, undefined, `'${name}'`);
      return await toToolResult(seen, tool.output, name);
    } finally {
      this.#waits.set(role, (this.#waits.get(role) ?? 1) - 1);
    }
  }

  async #untilTurn(role: string, timeoutMs: number, hooks: CallHooks): Promise<object> {
    const until = performance.now() + timeoutMs;
    for (;;) {
      hooks.controller.signal.throwIfAborted();
      const version = this.#version;
      const { done, turn = [] } = await this.status();
      const hasLeft = this.#order.departureOf(role) !== null;
      const left = until - performance.now();
      const isOwn = turn.includes(role);
      if (done || hasLeft || isOwn || left <= 0 || this.#endsWaits)
        return { your_turn: isOwn, over: done || hasLeft, observation: await this.#options.view(role, hooks) };
      await this.#nextChange(version, left, hooks.controller.signal);
    }
  }

  /** Resolves at the next change after this version, when the time is over, or when the signal fires. */
  #nextChange(version: number, ms: number, signal: AbortSignal): Promise<void> {
    if (version !== this.#version || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#wakers.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.#wakers.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }

  async #withStatus(result: CallToolResult): Promise<CallToolResult> {
    try {
      return { ...result, _meta: { [STATUS_META]: await this.status() } };
    } catch (error) {
      // The tool has run, so its result counts whatever becomes of the status, which can be asked for again.
      this.#options.logFailure("'status'", error);
      return result;
    }
  }

  /** Runs the work when that of all calls before it is done. */
  #inOrder<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(() => {
      signal.throwIfAborted();
      return work();
    });
    this.#last = done.catch(() => {});
    return untilAborted(done, signal);
  }

  #due(): readonly string[] {
    const { environment, roles, state } = this.#options;
    const { turnOf } = environment.definition;
    if (turnOf === undefined) return roles.names;
    const due: unknown = turnOf.call(environment.definition, state(null));
    if (Array.isArray(due) && due.every((role) => roles.names.includes(role))) return due;
    throw new PlatformError(
      "episode.failed",
      `'turnOf' of environment '${environment.name}' must return a list of the roles ${roles.names.join(", ")}, and at once`,
    );
  }

  #newOrder(record: TurnRecord | null): TurnOrder {
    return new TurnOrder(this.#options.roles, record, () => performance.now());
  }

  #start(): void {
    if (this.#order.start()) this.#setTimer();
  }

  #setTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const order = this.#order;
    if (!order.hasStarted) return;
    try {
      const due = this.#due();
      order.noteTurns(order.isOver(due) ? [] : order.mayAct(due));
    } catch (error) {
      this.#options.logFailure("'turnOf'", error);
      return;
    }
    const ms = order.untilLimit();
    if (ms !== null) this.#timer = setTimeout(() => void this.#endLateTurns(order), Math.ceil(ms) + 1).unref();
  }

  async #endLateTurns(order: TurnOrder): Promise<void> {
    try {
      await this.#inOrder(quietHooks().controller.signal, async () => {
        if (order !== this.#order || (await this.status()).done) return;
        for (const role of order.late()) await this.#giveUp(role, "time");
      });
    } catch (error) {
      this.#options.logFailure("the end of a turn", error);
    }
    if (order === this.#order) this.changed();
  }
}

/** The tools of one role of an instance. */
class RoleSurface implements ToolSurface {
  readonly role: string;
  readonly mcpCapabilities = {};
  readonly #play: RolePlay;

  constructor(play: RolePlay, role: string) {
    this.#play = play;
    this.role = role;
  }

  get id(): string {
    return this.#play.id;
  }

  get tools(): Toolset {
    return this.#play.toolsOf(this.role);
  }

  callTool(tool: CompiledTool, args: unknown, hooks: CallHooks): Promise<CallToolResult> {
    return this.#play.callTool(this.role, tool, args, hooks);
  }

  requestMcp(method: string): Promise<object> {
    return Promise.reject(new PlatformError("instance.unsupported", `${method} is not offered to roles`));
  }

  /** Also checks the arguments: whether it is the role's turn matters first, and wrong ones are an invalid move. */
  runTool(tool: CompiledTool, args: unknown, hooks: CallHooks): Promise<CallToolResult> {
    return this.callTool(tool, args, hooks);
  }
}

function userMessage(content: string): ChatMessage {
  return { role: "user", content };
}
