import { randomInt } from "node:crypto";
import {
  type ChildGrant,
  type CreateInstanceRequest,
  type EpisodeTask,
  FIRST_INSTANCE,
  type InstanceRecord,
  isPlatformError,
  type JsonObject,
  newInstanceId,
  PlatformError,
  type ResetRequest,
  type ResetResult,
  type SandboxGrant,
  type Task,
} from "@aenv/contract";
import type { ChildHost } from "../children/backend.ts";
import { PlatformChildren } from "../children/platform-children.ts";
import type { CompiledEnvironment } from "../compile/environment.ts";
import type { PlatformLink } from "../link/link.ts";
import type { ModelCalls } from "../models/model.ts";
import { forwardAbort, untilAborted } from "./call.ts";
import { type FailureLog, failureLog } from "./failure-log.ts";
import { type EpisodeSpec, Instance, moduleStateError } from "./instance.ts";
import type { HostContext } from "./setup.ts";
import { Tasks, taskJson } from "./tasks.ts";

export type InstanceSpec = Pick<CreateInstanceRequest, "id" | "seed" | "environment_variables" | "arguments" | "snapshot"> & {
  readonly task?: EpisodeTask | undefined;
  readonly sandboxes?: SandboxGrant | undefined;
  readonly modelNames?: readonly string[] | undefined;
  readonly children?: readonly ChildGrant[] | undefined;
};

type Variables = Readonly<Record<string, string>>;

/** The instances of one environment in this process, each with its own state. */
export class Host implements HostContext {
  readonly environment: CompiledEnvironment;
  readonly tasks: Tasks;
  readonly log: FailureLog;
  readonly link: PlatformLink | null;
  readonly models: ModelCalls | null;
  readonly children: ChildHost | null;
  readonly #instances = new Map<string, Instance>();
  /** What a task was made of that is not in the list; its forks need it. */
  readonly #inline = new WeakMap<Task, JsonObject>();
  /** Instances that are being set up, by id, with the controller that cancels their setup. */
  readonly #starting = new Map<string, AbortController>();
  readonly #listeners = new Set<(id: string) => void>();

  constructor(
    environment: CompiledEnvironment,
    log: FailureLog = failureLog(),
    link: PlatformLink | null = null,
    models: ModelCalls | null = null,
    children: ChildHost | null = link === null ? null : new PlatformChildren(link),
  ) {
    this.environment = environment;
    this.log = log;
    this.link = link;
    this.models = models;
    this.children = children;
    this.tasks = new Tasks(environment.definition, log);
  }

  get size(): number {
    return this.#instances.size;
  }

  get callsInFlight(): number {
    let count = 0;
    for (const instance of this.#instances.values()) count += instance.callsInFlight;
    return count;
  }

  list(): Instance[] {
    return [...this.#instances.values()];
  }

  find(id: string): Instance | null {
    return this.#instances.get(id) ?? null;
  }

  get(id: string): Instance {
    const instance = this.#instances.get(id);
    if (instance === undefined) throw new PlatformError("instance.not_found", `instance '${id}' not found in this process`);
    return instance;
  }

  /** Called with the id of every instance that ends, so that the MCP endpoint can drop its sessions. */
  onEnd(listener: (id: string) => void): void {
    this.#listeners.add(listener);
  }

  /** Sets an instance up. Cancelled when the signal fires, or when the instance is destroyed before it is ready. */
  async create(spec: InstanceSpec = {}, signal?: AbortSignal): Promise<Instance> {
    const id = spec.id ?? newInstanceId(this.environment.name);
    if (this.#instances.has(id) || this.#starting.has(id)) throw new PlatformError("instance.exists", `instance '${id}' exists already`);
    if (this.environment.keepsStateInModules && this.#instances.size + this.#starting.size > 0)
      throw moduleStateError(this.environment.name, "add to");
    const controller = new AbortController();
    const stopForwarding = forwardAbort(controller, signal);
    this.#starting.set(id, controller);
    try {
      const { environment_variables: variables = {} } = spec;
      const episode: EpisodeSpec = {
        task: spec.task === undefined ? null : await untilAborted(this.task(spec.task, variables), controller.signal),
        seed: spec.seed ?? randomInt(2 ** 31),
        variables,
        args: spec.arguments ?? [],
      };
      const children = spec.children ?? this.children?.ownGrants;
      const instance = await Instance.open(this, id, episode, controller, { ...spec, children });
      if (controller.signal.aborted) {
        await instance.close("it was cancelled before it was ready");
        throw controller.signal.reason;
      }
      this.#instances.set(id, instance);
      return instance;
    } finally {
      stopForwarding();
      this.#starting.delete(id);
    }
  }

  /** The spec of a copy that continues from the current state of the instance, in this process or another one. */
  async forkSpec(id: string, signal?: AbortSignal): Promise<InstanceSpec> {
    const parent = this.get(id);
    const { snapshot, copies } = await parent.store(signal);
    const { task, seed, variables, args } = parent.episode;
    const { grant, modelNames, children } = parent.rights;
    return {
      ...(task !== null && { task: this.givenOf(task) }),
      seed,
      environment_variables: { ...variables },
      arguments: [...args],
      snapshot,
      ...(modelNames !== undefined && { modelNames }),
      ...(children !== undefined && children.length > 0 && { children }),
      ...(grant !== null && { sandboxes: { ...grant, ...(copies.length > 0 && { copies }) } }),
    };
  }

  /** Creates copies that continue independently from the current state; the ids may be given. */
  async fork(id: string, wanted: number | readonly string[], signal?: AbortSignal): Promise<Instance[]> {
    const spec = await this.forkSpec(id, signal);
    const ids = typeof wanted === "number" ? Array.from({ length: wanted }, () => newInstanceId(this.environment.name)) : wanted;
    const creating = ids.map((copy) => this.create({ ...spec, id: copy }, signal));
    const created = await Promise.allSettled(creating);
    try {
      return await Promise.all(creating);
    } catch (error) {
      for (const copy of created) if (copy.status === "fulfilled") await this.destroy(copy.value.id);
      // Nobody sent the snapshot: the environment cannot restore what it has stored itself.
      throw isPlatformError(error, "snapshot.invalid")
        ? new PlatformError("instance.setup_failed", error.message, { cause: error })
        : error;
    } finally {
      await this.find(id)?.forget(spec.sandboxes?.copies ?? []);
    }
  }

  /** Gives an instance another id; sessions under the old one end. */
  rename(id: string, to: string): Instance {
    const instance = this.get(id);
    if (this.#instances.has(to) || this.#starting.has(to)) throw new PlatformError("instance.exists", `instance '${to}' exists already`);
    this.#instances.delete(id);
    for (const listener of this.#listeners) listener(id);
    instance.rename(to);
    this.#instances.set(to, instance);
    return instance;
  }

  async reset(id: string, request: ResetRequest, signal?: AbortSignal): Promise<ResetResult> {
    const instance = this.get(id);
    const { variables, args, ...before } = instance.episode;
    const task = request.task === undefined ? before.task : request.task === null ? null : await this.task(request.task, variables);
    const seed = request.seed ?? before.seed;
    const observation = await instance.reset({ task, seed, variables, args }, request.observations_only, signal, request.recording);
    return { task: task === null ? null : taskJson(task), seed, observation };
  }

  /** Ends an instance, also one that is still being set up; true if it existed. */
  async destroy(id: string, reason = "the instance was deleted"): Promise<boolean> {
    const instance = this.#instances.get(id);
    if (instance === undefined) return this.#cancelStart(id, reason);
    this.#instances.delete(id);
    for (const listener of this.#listeners) listener(id);
    await instance.close(reason);
    return true;
  }

  #cancelStart(id: string, reason: string): boolean {
    const controller = this.#starting.get(id);
    controller?.abort(new PlatformError("request.cancelled", reason));
    return controller !== undefined;
  }

  /** Aborts every call and every running setup. */
  abort(reason: string): void {
    for (const instance of this.#instances.values()) instance.abort(reason);
    for (const id of this.#starting.keys()) this.#cancelStart(id, reason);
  }

  givenOf(task: Task): EpisodeTask {
    return this.#inline.get(task) ?? task.id;
  }

  /** The task with this id, among those of an instance with these variables. */
  async task(wanted: EpisodeTask, variables: Variables): Promise<Task> {
    if (typeof wanted !== "string") {
      const task = await this.tasks.inline(wanted, variables);
      this.#inline.set(task, wanted);
      return task;
    }
    const id = wanted;
    const found = (await this.tasks.of(variables)).get(id);
    if (found === undefined)
      throw new PlatformError("task.not_found", `environment '${this.environment.name}' has no task '${id}'; GET /task/list lists them`);
    return found;
  }

  async close(reason: string): Promise<void> {
    for (const id of this.#starting.keys()) this.#cancelStart(id, reason);
    await Promise.all([...this.#instances.keys()].map((id) => this.destroy(id, reason)));
  }
}

/** An instance in the wire format of the control API. */
export function toRecord(instance: Instance, ip: string): InstanceRecord {
  const since = instance.createdAt.toISOString();
  const { lastActiveAt } = instance;
  return {
    id: instance.id,
    env: null,
    status: "Running",
    created_at: since,
    updated_at: lastActiveAt === 0 ? since : new Date(lastActiveAt).toISOString(),
    ip,
    ttl: "",
    owner: "",
    ...(instance.roles !== null && { roles: instance.roles }),
  };
}

export function isFirst(instance: Instance): boolean {
  return instance.id === FIRST_INSTANCE;
}
