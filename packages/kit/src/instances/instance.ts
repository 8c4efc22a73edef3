import {
  type CallToolResult,
  type ChildGrant,
  type EpisodeChild,
  isObject,
  type Json,
  messageOf,
  PlatformError,
  type RecordingRequest,
  type SandboxGrant,
  type Task,
} from "@aenv/contract";
import { Conversations } from "../agent/conversations.ts";
import { CONVERSATIONS, type ConversationContext } from "../agent/tools.ts";
import { EpisodeChildren, type StoredChildren } from "../children/episode-children.ts";
import type { CompiledTool, Toolset } from "../compile/environment.ts";
import { toolFailure } from "../compile/tool-result.ts";
import type { EpisodeContext, HealthReport, StateContext } from "../definition/definition.ts";
import { EpisodeModels } from "../models/episode-models.ts";
import { Recording } from "../models/recording.ts";
import { EpisodeSandboxes, type StoredCopies } from "../sandboxes/episode-sandboxes.ts";
import { turnsOf } from "./agent-turns.ts";
import { AuthorEpisode } from "./author-episode.ts";
import { type CallHooks, untilAborted } from "./call.ts";
import { Changes } from "./changes.ts";
import { Endpoints } from "./endpoints.ts";
import { EpisodePath } from "./episode-path.ts";
import { defaultHealth, runHealthCheck } from "./health.ts";
import { RolePlay } from "./role-play.ts";
import { RunningCalls } from "./running-calls.ts";
import {
  type EpisodeScope,
  type EpisodeStart,
  type HostContext,
  identityOf,
  observeOrTearDown,
  restoreState,
  setUp,
  tearDown,
} from "./setup.ts";
import { type Snapshot, writeSnapshot } from "./snapshot.ts";
import { ToolCalls } from "./tool-calls.ts";
import type { ToolSurface } from "./tool-surface.ts";

/** The inputs of an episode, without the id of its instance. */
export interface EpisodeSpec {
  readonly task: Task | null;
  readonly seed: number;
  readonly variables: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

export interface OpenInstanceOptions {
  readonly snapshot?: unknown;
  /** Set if the platform lets its code open sandboxes. */
  readonly sandboxes?: SandboxGrant | undefined;
  /** The models that the platform lets its code call. */
  readonly modelNames?: readonly string[] | undefined;
  /** Its children, as the platform lets it have them. */
  readonly children?: readonly ChildGrant[] | undefined;
}

export interface InstanceRights {
  /** Null if it may not open sandboxes. */
  readonly grant: SandboxGrant | null;
  /** Undefined if nobody has said which models there are. */
  readonly modelNames?: readonly string[] | undefined;
  readonly children?: readonly ChildGrant[] | undefined;
}

const ONLY_ROLES = "this environment has roles, and only their agents have tools: each uses the link of its own role";

/** How long a snapshot waits for running calls. */
const HOLD_MS = 30_000;

/** One running environment: an episode's state, and the calls on it. */
export class Instance implements ToolSurface {
  readonly role = null;
  #id: string;
  readonly createdAt = new Date();
  readonly #host: HostContext;
  #episode: EpisodeContext;
  #sandboxes: EpisodeSandboxes;
  #models: EpisodeModels;
  #children: EpisodeChildren;
  /** What the platform lets its code do. */
  readonly rights: InstanceRights;
  #path: EpisodePath | null;
  /** Made when a message first needs them, or from a snapshot. */
  #conversations: Conversations | undefined;
  #state: unknown;
  #tools: Toolset;
  /** Whether tools return observations instead of their whole results. A snapshot and a fork keep it. */
  #observationsOnly: boolean;
  readonly #calls = new RunningCalls();
  #authorEpisode: AuthorEpisode | undefined;
  #endpoints: Endpoints | undefined;
  #toolCalls: ToolCalls | undefined;
  /** Null without roles. */
  readonly #play: RolePlay | null;
  readonly #changes = new Changes();
  #isClosed = false;

  private constructor(
    host: HostContext,
    { context, sandboxes, models, children, path }: EpisodeScope,
    rights: InstanceRights,
    { state, tools, roleTools, turns }: EpisodeStart,
    snapshot: unknown,
  ) {
    this.#host = host;
    this.#id = context.instanceId;
    this.#episode = context;
    this.#sandboxes = sandboxes;
    this.#models = models;
    this.#children = children;
    this.#path = path;
    this.#conversations = conversationsIn(snapshot, this.#turns());
    this.rights = rights;
    this.#state = state;
    this.#tools = tools;
    this.#observationsOnly = isOfObservations(snapshot);
    const { environment } = host;
    this.#play =
      environment.roles === null
        ? null
        : new RolePlay(
            {
              environment,
              roles: environment.roles,
              calls: this.#calls,
              instanceId: () => this.#id,
              state: (role) => this.#stateContext(role),
              view: (role, hooks) => this.authorEpisode.view(role, hooks),
              runTool: (tool, args, hooks, finish) => this.#tooling.call(tool, args, hooks, finish),
              logFailure: (what, error, controller) => this.#logFailure(what, error, controller),
            },
            roleTools,
            turns,
          );
  }

  get id(): string {
    return this.#id;
  }

  /** In a copy of the whole process, the instance is another one. Its state and its variables stay as they are. */
  rename(id: string): void {
    this.#id = id;
    this.#episode = { ...this.#episode, instanceId: id };
    this.#sandboxes.instanceId = id;
    this.#models.instanceId = id;
    this.#children.instanceId = id;
  }

  /** Sets an instance up, or restores it from a snapshot. The controller cancels that. */
  static async open(
    host: HostContext,
    id: string,
    spec: EpisodeSpec,
    controller: AbortController,
    { snapshot, sandboxes, modelNames, children }: OpenInstanceOptions = {},
  ): Promise<Instance> {
    const grant = sandboxes ?? null;
    const episode = newEpisode(host, id, spec, { grant, modelNames, children }, snapshot);
    if (snapshot !== undefined && host.environment.keepsStateInModules) throw moduleStateError(host.environment.name, "restore");
    const start = snapshot === undefined ? await setUp(host, episode, controller) : await restoreState(host, snapshot, episode, controller);
    // Later episodes begin without the sandboxes of a parent.
    const later = grant === null ? null : { second: grant.second };
    return new Instance(host, episode, { grant: later, modelNames, children }, start, snapshot);
  }

  /** Its open children, and those below them. */
  listChildren(signal: AbortSignal): Promise<readonly EpisodeChild[]> {
    return this.#children.list(signal);
  }

  get episode(): EpisodeContext {
    return this.#episode;
  }

  /** The same object until an episode with other tools begins. Empty with roles: tools then belong to roles. */
  get tools(): Toolset {
    return this.#tools;
  }

  /** The names of its roles, in order; null if it has none. */
  get roles(): readonly string[] | null {
    return this.#host.environment.roles?.names ?? null;
  }

  /** The turns of its roles; an error without roles. */
  get play(): RolePlay {
    if (this.#play !== null) return this.#play;
    throw new PlatformError("role.not_found", `environment '${this.#host.environment.name}' has no roles`);
  }

  /** Answers agents that wait for their turns, because the process ends. */
  endWaits(): void {
    this.#play?.endWaits();
  }

  /** The role that a request is for: one of its own, or null if there are none. */
  roleFor(role: string | null | undefined): string | null {
    if (role != null) return this.play.surfaceOf(role).role;
    if (this.roles === null) return null;
    throw new PlatformError("request.invalid", `the environment has the roles ${this.roles.join(", ")}; say for which of them, in 'role'`);
  }

  get callsInFlight(): number {
    return this.#calls.count;
  }

  /** When a call began or ended last; 0 before the first. */
  get lastActiveAt(): number {
    return this.#calls.lastActiveAt;
  }

  /** What the environment says about the episode. */
  get authorEpisode(): AuthorEpisode {
    this.#authorEpisode ??= new AuthorEpisode({
      environment: this.#host.environment,
      calls: this.#calls,
      path: () => this.#path,
      state: (role) => this.#stateContext(role),
      context: (hooks) => this.#context(hooks, {}),
      play: this.#play,
      takeSnapshot: (signal) => this.#takeSnapshot(signal),
      childDigests: async (signal) => (this.#children.size === 0 ? null : this.#children.digests(signal)),
      logFailure: (what, error, controller) => this.#logFailure(what, error, controller),
    });
    return this.#authorEpisode;
  }

  /** The conversations with the agent; without an agent, the tasks of calls over A2A. */
  get conversations(): Conversations {
    this.#conversations ??= new Conversations(this.#turns());
    return this.#conversations;
  }

  #turns(): ReturnType<typeof turnsOf> {
    return turnsOf({
      agent: this.#host.environment.definition.agent,
      tools: this,
      calls: this.#calls,
      context: (hooks) => this.#context(hooks, {}),
      logFailure: (what, error, controller) => this.#logFailure(what, error, controller),
    });
  }

  /** Whether its code may call models. */
  get hasModels(): boolean {
    return this.#models.areThere;
  }

  /** The calls of models in this episode. */
  get recording(): Recording {
    return this.#models.recording;
  }

  /** Its functions and rewards. */
  get endpoints(): Endpoints {
    this.#endpoints ??= new Endpoints({
      environment: this.#host.environment,
      calls: this.#calls,
      path: () => this.#path,
      modelFailure: () => this.#conversations?.modelFailure ?? null,
      context: (hooks, input) => this.#context(hooks, input),
      play: this.#play,
      logFailure: (what, error, controller) => this.#logFailure(what, error, controller),
    });
    return this.#endpoints;
  }

  /** Runs a tool. A failure of its code becomes a result with `isError`; only a failure of the platform is thrown. */
  callTool(tool: CompiledTool, args: unknown, hooks: CallHooks): CallToolResult | Promise<CallToolResult> {
    if (this.#play !== null) return toolFailure(ONLY_ROLES);
    return this.#tooling.call(tool, args, hooks);
  }

  /** Like `callTool`, for arguments that the tool's schema has already accepted. */
  runTool(tool: CompiledTool, input: unknown, hooks: CallHooks): CallToolResult | Promise<CallToolResult> {
    if (this.#play !== null) return toolFailure(ONLY_ROLES);
    return this.#tooling.callChecked(tool, input, hooks);
  }

  get #tooling(): ToolCalls {
    this.#toolCalls ??= new ToolCalls({
      environment: this.#host.environment,
      calls: this.#calls,
      path: () => this.#path,
      models: () => this.#models,
      isObserved: () => this.#observationsOnly,
      state: (role) => this.#stateContext(role),
      context: (hooks, input) => this.#context(hooks, input),
      logFailure: (what, error, controller) => this.#logFailure(what, error, controller),
    });
    return this.#toolCalls;
  }

  /** Failures after an abort are not logged: they are expected. */
  #logFailure(what: string, error: unknown, controller?: AbortController): void {
    if (controller?.signal.aborted !== true) this.#host.log(`${what} of instance '${this.id}'`, error);
  }

  #stateContext(role: string | null = null): StateContext<unknown> {
    return { ...this.#episode, state: this.#state, role };
  }

  /** The capabilities of MCP that the environment offers beside tools. */
  get mcpCapabilities(): Readonly<Record<string, unknown>> {
    return this.#host.environment.definition.mcp?.(this.#state).capabilities ?? {};
  }

  /** Answers a request for resources, prompts or completions. What the environment's code throws reaches the client as a message. */
  async requestMcp(method: string, params: object, { controller }: CallHooks): Promise<object> {
    const answer = await this.#calls.run(
      () => this.#host.environment.definition.mcp?.(this.#state).request(method, params, controller.signal),
      controller,
      undefined,
      `'${method}'`,
    );
    return answer as object;
  }

  /** Runs the environment's own health check, or the default one. */
  async health(): Promise<HealthReport> {
    const { definition } = this.#host.environment;
    if (definition.health === undefined)
      return defaultHealth(this.#play === null ? this.#tools.size : this.#host.environment.tools.size, this.lastActiveAt);
    return runHealthCheck(
      () => definition.health?.(this.#stateContext()),
      (error) => this.#logFailure("health check", error),
    );
  }

  /** Begins a new episode and returns its first observation. If its setup fails, the old episode continues. */
  reset(spec: EpisodeSpec, observationsOnly = this.#observationsOnly, signal?: AbortSignal, recording?: RecordingRequest): Promise<Json> {
    return this.#change("reset", signal, async (controller) => {
      const episode = newEpisode(this.#host, this.id, spec, this.rights, undefined, new Recording(recording));
      const start = await setUp(this.#host, episode, controller);
      const observation = await observeOrTearDown(this.#host, start.state, episode, controller);
      this.#replace(episode, start, observationsOnly, "the episode was reset");
      return observation;
    });
  }

  /** A snapshot holds the state only, so there must be no sandbox that belongs to it. */
  async snapshot(signal?: AbortSignal): Promise<Snapshot> {
    if (this.#sandboxes.size > 0)
      throw new PlatformError(
        "snapshot.unsupported",
        `instance '${this.id}' has open sandboxes, whose files are no part of a snapshot of the state; fork the instance instead`,
      );
    this.#assertStored();
    return this.#takeSnapshot(signal);
  }

  /** A conversation may be with an agent elsewhere, which no copy can continue. */
  #assertStored(): void {
    const why = this.#host.environment.definition.agent?.notStored;
    if (why === undefined || (this.#conversations?.isEmpty ?? true)) return;
    throw new PlatformError("snapshot.unsupported", `instance '${this.id}' has conversations: ${why}`);
  }

  /** The state and the stored files of the open sandboxes. Call `forget` when all forks have been made. */
  async store(signal?: AbortSignal): Promise<{ readonly snapshot: Snapshot; readonly copies: StoredCopies }> {
    this.#assertStored();
    const copies = await this.#sandboxes.store(signal);
    try {
      return { snapshot: await this.#takeSnapshot(signal), copies };
    } catch (error) {
      await this.forget(copies);
      throw error;
    }
  }

  async forget(copies: StoredCopies): Promise<void> {
    await this.#sandboxes.forget(copies);
  }

  #takeSnapshot(signal?: AbortSignal): Promise<Snapshot> {
    return this.#change("snapshot", signal, async ({ signal: own }) => {
      const { environment, log } = this.#host;
      const conversations = this.#conversations;
      const write = () =>
        this.#withChildren(own, async (children) => {
          // Read in the same tick as the state, so that all are of the same moment.
          const path = this.#path?.read();
          const { recording } = this.#models;
          const exchanges = recording.isEmpty ? undefined : recording.store();
          const agent = conversations === undefined || conversations.isEmpty ? undefined : conversations.store();
          const snapshot = await untilAborted(writeSnapshot(environment.definition, this.#state, identityOf(environment)), own);
          return {
            ...snapshot,
            ...(this.#observationsOnly && { observations_only: true }),
            ...(path !== undefined && { path }),
            ...(exchanges !== undefined && { recording: exchanges }),
            ...(agent !== undefined && { agent }),
            ...(children !== null && { children }),
          };
        });
      try {
        if (this.#play !== null) return await this.#play.between(own, async (turns) => ({ ...(await write()), turns }));
        return await (conversations === undefined ? write() : conversations.whenIdle(own, write));
      } catch (error) {
        if (error instanceof PlatformError || own.aborted) throw error;
        log(`snapshot of instance '${this.id}'`, error);
        throw new PlatformError("snapshot.unsupported", `snapshot of '${environment.name}' failed: ${messageOf(error)}`, { cause: error });
      }
    });
  }

  /** No call runs meanwhile that may change a child, so that the states of children are of the same moment as the own one. */
  async #withChildren<T>(signal: AbortSignal, write: (children: StoredChildren | null) => Promise<T>): Promise<T> {
    if (this.#children.size === 0) return write(null);
    const release = await this.#calls.hold(HOLD_MS);
    try {
      return await write(await this.#children.store(signal));
    } finally {
      release();
    }
  }

  restore(snapshot: unknown, signal?: AbortSignal): Promise<void> {
    return this.#change("restore", signal, async (controller) => {
      const { task, seed, variables, args } = this.#episode;
      const episode = newEpisode(this.#host, this.id, { task, seed, variables, args }, this.rights, snapshot);
      const start = await restoreState(this.#host, snapshot, episode, controller);
      this.#replace(episode, start, isOfObservations(snapshot), "the state was restored from a snapshot", snapshot);
    });
  }

  /** Aborts running calls, then runs the environment's teardown. */
  async close(reason: string): Promise<void> {
    this.#isClosed = true;
    this.#conversations?.close(reason);
    this.abort(reason);
    await this.#changes.done();
    this.#play?.close();
    await tearDown(this.#host, this.id, this.#state, { sandboxes: this.#sandboxes, children: this.#children });
    this.#state = undefined;
  }

  /** Aborts calls, resets and restores: a setup that hangs must not block the end of the instance. */
  abort(reason: string): void {
    this.#calls.abort(reason);
    this.#changes.abort(reason);
  }

  #context(hooks: CallHooks, input: unknown): ConversationContext {
    const { instanceId, task, seed, variables, args } = this.#episode;
    return {
      instanceId,
      task,
      seed,
      variables,
      args,
      ...this.#sandboxes.for(hooks.controller.signal),
      ...this.#models.for(hooks.controller.signal),
      ...this.#children.for(hooks.controller.signal),
      state: this.#state,
      role: hooks.role ?? null,
      signal: hooks.controller.signal,
      log: hooks.log,
      progress: hooks.progress,
      inputText: hooks.inputText ?? (() => JSON.stringify(input)),
      [CONVERSATIONS]: () => this.conversations,
    };
  }

  #replace(
    { context, sandboxes, models, children, path }: EpisodeScope,
    { state, tools, roleTools, turns }: EpisodeStart,
    observationsOnly: boolean,
    reason: string,
    snapshot?: unknown,
  ): void {
    const old = { state: this.#state, sandboxes: this.#sandboxes, children: this.#children };
    const conversations = conversationsIn(snapshot, this.#turns());
    this.#conversations?.close(reason);
    this.#conversations = conversations;
    this.#calls.abort(reason);
    this.#episode = context;
    this.#sandboxes = sandboxes;
    this.#models = models;
    this.#children = children;
    this.#path = path;
    this.#state = state;
    this.#tools = tools;
    this.#observationsOnly = observationsOnly;
    this.#play?.begin(roleTools, turns);
    void tearDown(this.#host, this.id, old.state, old);
  }

  /** Runs a change of the whole state after those before it. */
  #change<T>(verb: string, signal: AbortSignal | undefined, work: (controller: AbortController) => Promise<T>): Promise<T> {
    return this.#changes.enqueue(signal, async (controller) => {
      const { name, keepsStateInModules } = this.#host.environment;
      if (keepsStateInModules) throw moduleStateError(name, verb);
      controller.signal.throwIfAborted();
      if (this.#isClosed) throw new PlatformError("instance.gone", `instance '${this.id}' has ended`);
      return work(controller);
    });
  }
}

function newEpisode(
  host: HostContext,
  instanceId: string,
  spec: EpisodeSpec,
  { grant, modelNames, children: grants = [] }: InstanceRights,
  snapshot?: unknown,
  recording = Recording.from(snapshot),
): EpisodeScope {
  const sandboxes = new EpisodeSandboxes(host.link, grant, instanceId);
  // A platform says which models an instance has. Without that, its process is not connected.
  const models = new EpisodeModels(host.models, instanceId, modelNames ?? (host.link === null ? null : []), recording);
  const task = spec.task === null ? null : host.givenOf(spec.task);
  const children = new EpisodeChildren({ host: host.children, grants, instanceId, seed: spec.seed, task });
  const path = host.environment.recordsPath ? EpisodePath.from(snapshot) : null;
  return { context: { instanceId, ...spec, ...sandboxes.for(), ...models.for(), ...children.for() }, sandboxes, models, children, path };
}

function conversationsIn(snapshot: unknown, turns: ReturnType<typeof turnsOf>): Conversations | undefined {
  return isObject(snapshot) && snapshot.agent !== undefined ? new Conversations(turns, snapshot) : undefined;
}

function isOfObservations(snapshot: unknown): boolean {
  return isObject(snapshot) && snapshot.observations_only === true;
}

export function moduleStateError(name: string, verb: string): PlatformError {
  return new PlatformError(
    "instance.unsupported",
    `environment '${name}' keeps its state in its modules (register*), so a process has one instance and cannot ${verb} it; use defineEnvironment with 'setup' to make the state a value`,
  );
}
