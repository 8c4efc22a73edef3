import {
  type Catalogue,
  type ForkFidelity,
  forkFidelities,
  type Json,
  type ResetResult,
  type Reward,
  type RoleRewards,
  type SnapshotRecord,
  type StartedFrom,
  type Task,
  type ToolDescriptor,
} from "@aenv/contract";
import { EnvironmentError, ValidationError } from "../errors/errors.ts";
import type { ToolResult } from "../mcp/tool-result.ts";
import type { ToolSource } from "../mcp/tool-source.ts";
import { InstanceSandbox } from "../sandbox/sandbox.ts";
import { EnvironmentBatch } from "./batch.ts";
import type { CallToolOptions, EnvironmentInfo, ForkOptions, NewEpisode, RoleOptions, SnapshotOptions } from "./call-options.ts";
import { type Clients, Connection } from "./connection.ts";
import { EpisodeClient } from "./episode.ts";
import { InstanceLifecycle } from "./instance-lifecycle.ts";
import { agentUrlOf, type InstanceRuntime, roleUrlsOf, runtimeOf, warningsOf } from "./open-instance.ts";
import type { EnvironmentOptions, InstanceOptions } from "./options.ts";
import type { CallOptions } from "./sandbox-client.ts";
import { toReward, toRoleRewards } from "./score.ts";
import { checkArguments, plainToolName } from "./tool-caller.ts";

type Arguments = Readonly<Record<string, unknown>>;
type Work<T> = (env: Environment) => Promise<T> | T;

const READY_TIMEOUT_MS = 300_000;
const MAX_FORKS = 1_000;
const MAX_BATCH = 100_000;

/**
 * One instance of an environment, opened on first use.
 * With `DUMMY_INSTANCE_IP` or `instanceUrl` it is an instance that already runs; otherwise the platform creates it, and `release` ends it.
 *
 * @example
 * await using env = await Environment.create("weather-demo@1.0.0");
 * const result = await env.callTool("get_weather", { city: "Beijing" });
 */
export class Environment implements ToolSource {
  readonly name: string;
  readonly #connection: Connection;
  readonly #episode: EpisodeClient;
  #clients: Clients | null = null;
  #sandbox: InstanceSandbox | undefined;

  constructor(ref: string, options: EnvironmentOptions = {}) {
    if (ref.trim() === "") throw new ValidationError("an environment needs a name, such as 'weather-demo@1.0.0'");
    this.name = ref;
    this.#connection = new Connection(ref, options);
    this.#episode = new EpisodeClient(ref, async (method, own) => {
      const { sandbox } = await this.#open(method, own);
      return { sandbox, options: this.#with(own) };
    });
  }

  /** A new environment, ready to be used. */
  static async create(ref: string, options: EnvironmentOptions = {}): Promise<Environment> {
    const env = new Environment(ref, options);
    await env.initialize();
    return env;
  }

  /**
   * Creates many environments by one request: a number of equal ones, or one for each entry of a list, whose options override
   * the common ones. One that does not start is an error of its own item and does not stop the others.
   *
   * @example
   * await using batch = await Environment.createMany("shop@1.0.0", tasks.map(({ id }) => ({ task: id })), { ttl: "1h" });
   */
  static async createMany(
    ref: string,
    wanted: number | readonly InstanceOptions[],
    options: EnvironmentOptions = {},
  ): Promise<EnvironmentBatch<Environment>> {
    const each = typeof wanted === "number" ? Array.from({ length: checkCount(wanted) }, () => ({})) : wanted;
    const environments = each.map((own) => new Environment(ref, { ...options, ...own }));
    if (environments.some((env) => env.#connection.addresses.mode === "local")) {
      throw new ValidationError(
        `cannot create ${each.length} instances of '${ref}': with instanceUrl or DUMMY_INSTANCE_IP no instance is created; set systemUrl to use a platform, or fork a running instance`,
      );
    }
    const opened = await InstanceLifecycle.openAll(
      environments.map((env) => env.#lifecycle),
      options.signal,
    );
    return new EnvironmentBatch<Environment>(
      environments.map((environment, at) => {
        const result = opened[at] as (typeof opened)[number];
        return result.status === "fulfilled" ? { environment, error: null } : { environment: null, error: result.reason };
      }),
    );
  }

  /**
   * Opens an environment, calls `work` with it, and always releases it: `await using` for older versions of JavaScript.
   *
   * @example
   * const { reward } = await Environment.use("shop@1.0.0", { task: "refund-1" }, async (env) => {
   *   await env.callTool("cancel_order", { id: "42" });
   *   return env.score();
   * });
   */
  static use<T>(ref: string, work: Work<T>): Promise<T>;
  static use<T>(ref: string, options: EnvironmentOptions, work: Work<T>): Promise<T>;
  static async use<T>(ref: string, ...rest: [Work<T>] | [EnvironmentOptions, Work<T>]): Promise<T> {
    const [options, work] = rest.length === 1 ? [{}, rest[0]] : rest;
    const env = new Environment(ref, options);
    try {
      await env.initialize();
      return await work(env);
    } finally {
      await env.release();
    }
  }

  /** Opens the instance; does nothing if it is open. Every other method does this itself. */
  async initialize(options: Pick<CallOptions, "signal"> = {}): Promise<void> {
    await this.#lifecycle.open(this.#signal(options), true);
  }

  /** The tools with full names, `weather-demo@1.0.0/get_weather`. */
  async listTools(options: RoleOptions = {}): Promise<ToolDescriptor[]> {
    const { toolsOf } = await this.#open("listTools", options);
    const { timeoutMs = this.#connection.timeoutMs, role } = options;
    return toolsOf(role).list({ timeoutMs, signal: this.#signal(options) });
  }

  /**
   * Calls a tool by its full or its plain name. The call is never sent twice.
   * A tool that fails gives a result with `isError`; only a call without a result throws.
   *
   * @example
   * const result = await env.callTool("search", { query: "tea" }, { timeoutMs: 5_000, onLog: console.log });
   */
  async callTool(name: string, args: Arguments = {}, options: CallToolOptions = {}): Promise<ToolResult> {
    const toolName = plainToolName(this.name, name);
    checkArguments(toolName, args);
    const { toolsOf } = this.#clients ?? (await this.#open("callTool", options));
    const { timeoutMs = this.#connection.timeoutMs, onProgress, onLog, role } = options;
    return toolsOf(role).call(toolName, args, { timeoutMs, signal: this.#signal(options), onProgress, onLog });
  }

  /** Functions, rewards and health checks, with the path and the method of each. */
  async listFunctions(options: CallOptions = {}): Promise<Catalogue> {
    const { sandbox } = await this.#open("listFunctions", options);
    return sandbox.listFunctions(this.#with(options));
  }

  /** Calls a function at the path and by the method that the environment declares. */
  async callFunction<T = unknown>(name: string, args: Arguments = {}, options: CallOptions = {}): Promise<T> {
    const { sandbox } = await this.#open("callFunction", options);
    return (await sandbox.callFunction(name, args, this.#with(options))) as T;
  }

  /** The reward as the environment returned it, not validated. See `score` for a number. */
  async callReward<T = unknown>(args: Arguments = {}, options: CallOptions = {}): Promise<T> {
    const { sandbox } = await this.#open("callReward", options);
    return (await sandbox.callReward(args, this.#with(options))) as T;
  }

  /** The reward as a number, with its components. Throws if the environment's answer is not a reward; it never counts as 0. */
  async score(args: Arguments = {}, options: CallOptions = {}): Promise<Reward> {
    return toReward(await this.callReward(args, options), this.name);
  }

  /**
   * The rewards of an environment with roles: that of each role, scored or not, and that of the whole episode.
   *
   * @example
   * const { roles } = await env.scoreRoles();
   * if (roles.white?.outcome.kind === "scored") console.log(roles.white.outcome.reward);
   */
  async scoreRoles(args: Arguments = {}, options: CallOptions = {}): Promise<RoleRewards> {
    return toRoleRewards(await this.callReward(args, options), this.name);
  }

  /** The health check's whole response, also when it is unhealthy. */
  async checkHealth(args: Arguments = {}, options: CallOptions = {}): Promise<Record<string, unknown>> {
    const { sandbox } = await this.#open("checkHealth", options);
    return sandbox.checkHealth(args, this.#with(options));
  }

  async getEnvInfo(options: Pick<CallOptions, "signal"> = {}): Promise<EnvironmentInfo> {
    const { record } = await this.#lifecycle.open(this.#signal(options));
    const { id, status, ip, created_at, updated_at } = record;
    return { name: this.name, instanceId: id, status, ip: ip ?? "", createdAt: created_at, updatedAt: updated_at };
  }

  /**
   * The URLs for the MCP clients of several agents, by role: each gives access to the tools of its role and nothing else. Null if the
   * environment has no roles.
   *
   * @example
   * const { white, black } = (await env.roleUrls()) ?? {};
   */
  async roleUrls(options: Pick<CallOptions, "signal"> = {}): Promise<Readonly<Record<string, string>> | null> {
    const { record } = await this.#lifecycle.open(this.#signal(options));
    return roleUrlsOf(record);
  }

  /** The base URL for A2A clients: tools and conversations of this instance, and nothing else. Null if it has none, as with roles. */
  async a2aUrl(options: Pick<CallOptions, "signal"> = {}): Promise<string | null> {
    const { record } = await this.#lifecycle.open(this.#signal(options));
    return record.a2a_url ?? null;
  }

  /**
   * The URL for an agent's MCP client: it gives access to this instance's tools and nothing else. Only a platform provides one.
   *
   * @example
   * const transport = new StreamableHTTPClientTransport(new URL(await env.agentUrl()));
   */
  async agentUrl(options: Pick<CallOptions, "signal"> = {}): Promise<string> {
    const { record, url } = await this.#lifecycle.open(this.#signal(options));
    const link = agentUrlOf(record);
    if (link !== null) return link;
    const roles = roleUrlsOf(record);
    if (roles !== null) {
      const message = `'${this.name}' has the roles ${Object.keys(roles).join(", ")}; each has a link of its own: use roleUrls()`;
      throw new EnvironmentError(message, { code: "instance.unsupported", envName: this.name });
    }
    throw new EnvironmentError(
      `'${this.name}' has no agent URL, because it does not run behind an AEnv platform; its tools are at ${url}/mcp, together with its trainer API`,
      { code: "instance.unsupported", envName: this.name },
    );
  }

  /**
   * A link to a port inside the instance's sandbox, for HTTP and WebSocket; paths can be appended. It works without a token
   * until it expires, and answers 502 while nothing listens on the port.
   *
   * @example
   * const url = await env.presignUrl(3000, { minutes: 30 });
   * const page = await fetch(`${url}/index.html`);
   */
  async presignUrl(
    port: number,
    { minutes, ...options }: { readonly minutes?: number } & Pick<CallOptions, "signal"> = {},
  ): Promise<string> {
    const signal = this.#signal(options);
    return this.#lifecycle.presignUrl(port, minutes, signal);
  }

  /**
   * The instance's own sandbox on a platform: commands, files and ports.
   *
   * @example
   * await env.sandbox.files.write("answer.txt", "42");
   * const { exitCode } = await env.sandbox.exec("pytest -q", { timeoutMs: 60_000 });
   */
  get sandbox(): InstanceSandbox {
    this.#sandbox ??= new InstanceSandbox((signal) => this.#lifecycle.sandboxTarget(this.#signal(signal === undefined ? {} : { signal })));
    return this.#sandbox;
  }

  /** Options that the server could not apply, such as mounting a storage; empty until the instance is open. */
  get warnings(): readonly string[] {
    const { instance } = this.#lifecycle;
    return instance === null ? [] : warningsOf(instance.record);
  }

  /** What runs the instance, as far as the server says; null until the instance is open. */
  get runtime(): InstanceRuntime | null {
    const { instance } = this.#lifecycle;
    return instance === null ? null : runtimeOf(instance.record);
  }

  /** Waits until the instance runs and is healthy. */
  async waitForReady(options: CallOptions = {}): Promise<void> {
    await this.#lifecycle.waitForReady(options.timeoutMs ?? READY_TIMEOUT_MS, this.#signal(options));
  }

  /** The environment's tasks, all or those of one split. */
  async tasks(options: CallOptions & { readonly split?: string } = {}): Promise<Task[]> {
    const { sandbox } = await this.#open("tasks", options);
    return sandbox.tasks(options.split, this.#with(options));
  }

  /**
   * Begins a new episode. Options that are left out keep their value; a task of null means no task. With `observationsOnly`, tools
   * return what the environment means for the agent, without rewards; `episode.abilities` says whether the environment can do that.
   * Returns the task, the seed and the agent's first observation.
   */
  async reset({ observationsOnly, ...episode }: NewEpisode = {}, options: CallOptions = {}): Promise<ResetResult> {
    const { sandbox } = await this.#open("reset", options);
    const body = { ...episode, ...(observationsOnly !== undefined && { observations_only: observationsOnly }) };
    return sandbox.reset(body, this.#with(options));
  }

  /**
   * What the environment says about its episode: prompt, replies, status, step rewards, a solution.
   *
   * @example
   * const { messages } = await env.episode.prompt();
   */
  get episode(): EpisodeClient {
    return this.#episode;
  }

  /**
   * The state as a value, for `restore` or for the option `snapshot` of a new environment. With a name or a fidelity, the platform stores the
   * snapshot, and the result describes it.
   *
   * @example
   * await env.snapshot({ name: "prepared", fidelity: "files" });
   * const copy = await Environment.create("shop@1.0.0", { snapshot: "prepared" });
   */
  snapshot(
    options: CallOptions & SnapshotOptions & ({ readonly name: string } | { readonly fidelity: ForkFidelity }),
  ): Promise<SnapshotRecord>;
  snapshot(options?: CallOptions): Promise<Json>;
  async snapshot({ name, fidelity, includeSecrets, ...options }: CallOptions & SnapshotOptions = {}): Promise<Json | SnapshotRecord> {
    if (name !== undefined || fidelity !== undefined)
      return this.#lifecycle.store(
        {
          ...(name !== undefined && { name }),
          ...(fidelity !== undefined && { fidelity }),
          ...(includeSecrets !== undefined && { include_secrets: includeSecrets }),
        },
        this.#signal(options),
      );
    const { sandbox } = await this.#open("snapshot", options);
    return (await sandbox.snapshot(this.#with(options))) as Json;
  }

  /** Restores the state of a snapshot. */
  async restore(snapshot: Json, options: CallOptions = {}): Promise<void> {
    const { sandbox } = await this.#open("restore", options);
    await sandbox.restore(snapshot, this.#with(options));
  }

  /**
   * Copies of the instance. Each copy is an instance of its own that must be released. They continue with its state; with the fidelity
   * `files` also with the files of its sandbox, and with `memory` with its processes and their memory, where the platform can do that.
   * Without a fidelity, copies of a program continue with its memory, or with its files if its sandbox cannot copy memory. `forkFidelity`
   * of a copy says what it has.
   *
   * @example
   * const [left, right] = await env.fork(2);
   * const eight = await env.fork(8, { fidelity: "memory" });
   */
  async fork(count = 1, options: ForkOptions = {}): Promise<Environment[]> {
    if (!Number.isInteger(count) || count < 1 || count > MAX_FORKS) {
      throw new ValidationError(`cannot fork ${count} times: the count must be from 1 to ${MAX_FORKS}`);
    }
    const copies = await this.#lifecycle.fork(count, options.fidelity, this.#signal(options));
    return copies.map((instance) => {
      const copy = new Environment(this.name, this.#connection.options);
      copy.#lifecycle.adopt(instance);
      return copy;
    });
  }

  /** What this instance continued with, if it is a fork of a platform; else null. */
  get forkFidelity(): ForkFidelity | null {
    const fidelity = this.#lifecycle.instance?.record.fork_fidelity;
    return forkFidelities.find((known) => known === fidelity) ?? null;
  }

  /** The stored snapshot that this instance was started from, if it was; else null. */
  get startedFrom(): StartedFrom | null {
    return this.#lifecycle.instance?.record.started_from ?? null;
  }

  /** Ends the instance if this environment created it. Safe to call at any time and more than once; never throws. */
  async release(): Promise<void> {
    const clients = this.#clients;
    this.#clients = null;
    await clients?.[Symbol.asyncDispose]();
    await this.#lifecycle.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #open(method: string, options: Pick<CallOptions, "signal">): Promise<Clients> {
    if (this.#connection.options.dataPlane === false) throw this.#unavailable(method);
    const instance = await this.#lifecycle.open(this.#signal(options));
    if (this.#clients?.instance !== instance) this.#clients = this.#connection.clientsOf(instance);
    return this.#clients;
  }

  get #lifecycle(): InstanceLifecycle {
    return this.#connection.lifecycle;
  }

  #unavailable(method: string): EnvironmentError {
    return new EnvironmentError(
      `${method} is not available: '${this.name}' was opened with dataPlane: false; use presignUrl() to reach a port inside its sandbox`,
      { code: "instance.unsupported", envName: this.name },
    );
  }

  #with(options: CallOptions): CallOptions {
    const signal = this.#signal(options);
    return signal === undefined ? options : { ...options, signal };
  }

  #signal(options: Pick<CallOptions, "signal">): AbortSignal | undefined {
    const { signal: own } = this.#connection.options;
    if (own === undefined || options.signal === undefined) return own ?? options.signal;
    return AbortSignal.any([own, options.signal]);
  }
}

function checkCount(count: number): number {
  if (Number.isInteger(count) && count >= 0 && count <= MAX_BATCH) return count;
  throw new ValidationError(`cannot create ${count} instances: the count must be an integer from 0 to ${MAX_BATCH}`);
}
